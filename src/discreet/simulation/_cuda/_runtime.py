"""The only module that talks to a GPU: through CuPy, and NVIDIA's compiler at run time.

What is compiled is kept in CuPy's cache on disk.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BackendError
from discreet.simulation._cuda._plan import DECLARATIONS

_ROUNDS = Path(__file__).with_name("rounds.cu")
_OPTIONS = ("--std=c++17", "--use_fast_math")  # the latter is about float32 alone


def source() -> str:
    """What is compiled: the declarations of tables, and `rounds.cu`."""
    return DECLARATIONS + _ROUNDS.read_text(encoding="utf-8")


class _Buffer:
    def __init__(self, array: Any) -> None:  # noqa: ANN401  # CuPy's
        self._array = array

    @property
    def address(self) -> int:
        return int(self._array.data.ptr)

    def read(self, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.asarray(self._array.get()).view(dtype).reshape(shape)


class _Stream:
    def __init__(self, cupy: Any) -> None:  # noqa: ANN401  # CuPy is an extra
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._start, self._end = cupy.cuda.Event(), cupy.cuda.Event()
        self._between = cupy.cuda.get_elapsed_time
        self._sender = cupy.cuda.get_current_stream()
        self._fresh = True

    def launch(self, function: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401  # CuPy is an extra
        given = tuple(
            np.uint64(one.address) if isinstance(one, _Buffer) else np.int64(one)
            for one in arguments
        )
        if self._fresh:  # what was sent may be on its way; other kernels need not end for it
            self._sender.synchronize()
            self._fresh = False
        self._start.record(self._stream)
        function((blocks,), (threads,), given, stream=self._stream)
        self._end.record(self._stream)

    def busy(self) -> bool:
        return not self._end.done

    def wait(self) -> None:
        self._end.synchronize()

    def seconds(self) -> float:
        self._end.synchronize()
        return float(self._between(self._start, self._end)) / 1000


class Gpu:
    """The first GPU of this machine."""

    def __init__(self) -> None:
        """Find it, or say what is missing."""
        try:
            import cupy  # noqa: PLC0415  # an extra
        except ImportError:
            raise BackendError(
                "device",
                "cuda needs CuPy, which is not installed; run pip install 'discreet[cuda]'",
            ) from None
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError:
            count = 0
        if count == 0:
            raise BackendError("device", "is cuda, but no GPU is found here; use --device cpu")
        self._cupy = cupy
        self._kernels: dict[str, Any] = {}
        self.processors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])

    def compiled(self, macros: dict[str, int]) -> Any:  # noqa: ANN401  # CuPy is an extra
        """The kernel for one shape, from the cache on disk if it was compiled before."""
        key = repr(macros)
        if key not in self._kernels:
            self._cupy.cuda.Device().use()  # also in a thread that has not met it yet
            options = _OPTIONS + tuple(f"-D{name}={value}" for name, value in macros.items())
            module = self._cupy.RawModule(code=source(), options=options)
            try:
                self._kernels[key] = module.get_function("play")
            except RuntimeError as error:
                if "failed to load" not in str(error):
                    raise
                raise BackendError(
                    "device",
                    "cuda needs NVIDIA's compiler at run time, which is not found here; install "
                    "the CUDA 13 toolkit, or run pip install 'cupy-cuda13x[ctk]'",
                ) from None
        return self._kernels[key]

    def put(self, array: NDArray[Any]) -> _Buffer:
        """A copy on the device."""
        return _Buffer(self._cupy.asarray(np.ascontiguousarray(array).view(np.uint8).reshape(-1)))

    def zeros(self, size: int) -> _Buffer:
        """A buffer of ``size`` zero bytes on the device."""
        return _Buffer(self._cupy.zeros(size, dtype=np.uint8))

    def stream(self) -> _Stream:
        """A new stream."""
        return _Stream(self._cupy)
