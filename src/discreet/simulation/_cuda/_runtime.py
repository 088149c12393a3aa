"""The only module that talks to a GPU: through CuPy, and NVIDIA's compiler at run time.

What is compiled is kept in CuPy's cache on disk.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BackendError
from discreet.simulation._cuda._plan import DECLARATIONS

_ROUNDS = Path(__file__).with_name("rounds.cu")
_NOT_READY = 600  # CUDA's word for an event that is still to come
_PRIORITIES = 5  # besides the usual one; a device that has fewer takes its highest
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


class _Launch:
    def __init__(self, cupy: Any, opened: Any) -> None:  # noqa: ANN401  # CuPy is an extra
        self._opened, self._between = opened, cupy.cuda.get_elapsed_time
        self._status = cupy.cuda.runtime.eventQuery
        self.start, self.end = cupy.cuda.Event(), cupy.cuda.Event()

    @property
    def done(self) -> bool:
        status = self._status(self.end.ptr)
        if status == _NOT_READY:
            return False
        if status != 0:
            self.end.synchronize()  # raises what went wrong
        return True

    def span(self) -> tuple[float, float]:
        self.end.synchronize()
        began, took = (self._opened, self.start), (self.start, self.end)
        return self._between(*began) / 1000, self._between(*took) / 1000


class _Stream:
    def __init__(self, cupy: Any, opened: Any, rank: int) -> None:  # noqa: ANN401  # as above
        priority = min(0, rank - _PRIORITIES)
        self._stream = cupy.cuda.Stream(non_blocking=True, priority=priority)
        self._cupy, self._opened = cupy, opened
        self._sender = cupy.cuda.get_current_stream()
        self._fresh = True

    def launch(
        self,
        function: Any,  # noqa: ANN401  # as above
        blocks: int,
        threads: int,
        arguments: tuple[Any, ...],
    ) -> _Launch:
        given = tuple(
            np.uint64(one.address) if isinstance(one, _Buffer) else np.int64(one)
            for one in arguments
        )
        if self._fresh:  # what was sent may be on its way; other kernels need not end for it
            self._sender.synchronize()
            self._fresh = False
        launch = _Launch(self._cupy, self._opened)
        launch.start.record(self._stream)
        function((blocks,), (threads,), given, stream=self._stream)
        launch.end.record(self._stream)
        return launch


class Gpu:
    """The first GPU of this machine."""

    def __init__(self) -> None:
        """Find it, or say what is missing."""
        # Streams that share a connection wait for each other. Read when CUDA starts.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
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
        self._opened = cupy.cuda.Event()
        self._opened.record()
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

    def stream(self, rank: int) -> _Stream:
        """A new stream; where several have work, lower ranks go first."""
        return _Stream(self._cupy, self._opened, rank)
