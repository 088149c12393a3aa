"""A processor in the place of a GPU: the same source, compiled by the system's C++ compiler."""

import ctypes
import hashlib
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.simulation._cuda import _runtime as runtime

_HERE = Path(__file__).parent


class HostBuffer:
    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)

    def read(self, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
        return self.array.copy().view(dtype).reshape(shape)


class HostLaunch:
    done = True

    def span(self) -> tuple[float, float]:
        return 0.0, 1.0


class HostStream:
    def launch(
        self,
        function: Any,  # noqa: ANN401
        blocks: int,
        threads: int,
        arguments: tuple[Any, ...],
    ) -> HostLaunch:
        del blocks, threads
        given = (one.address if isinstance(one, HostBuffer) else int(one) for one in arguments)
        function(*(ctypes.c_int64(one) for one in given))
        return HostLaunch()


class Host:
    """One lane; ``changed`` is put in the place of text of the source, to plant errors."""

    processors = 1

    def __init__(self, changed: tuple[str, str] = ("", "")) -> None:
        self._folder = Path(tempfile.gettempdir()) / "discreet-host"
        self._changed = changed

    def compiled(self, macros: dict[str, int]) -> Any:  # noqa: ANN401
        macros = {**macros, "BLOCK": 1, "LANES": 1}
        text = runtime.source()
        old, new = self._changed
        assert old in text
        source = text.replace(old, new) if old else text
        parts = [source, (_HERE / "host.h").read_text(), (_HERE / "host.cpp").read_text()]
        name = hashlib.sha256(("".join(parts) + repr(macros)).encode()).hexdigest()[:20]
        folder = self._folder / name
        library = folder / "rounds.so"
        if not library.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "rounds.cu").write_text(source)
            self._compile(folder, macros, library)
        return ctypes.CDLL(str(library)).play_all

    @staticmethod
    def _compile(folder: Path, macros: dict[str, int], library: Path) -> None:
        given = [f"-D{name}={value}" for name, value in macros.items()]
        places = [f"-I{folder}", f"-I{_HERE}", "-O1", "-w", "-std=c++17", "-shared", "-fPIC"]
        part = library.with_suffix(f".{id(given)}")
        command = ["c++", *given, *places, str(_HERE / "host.cpp"), "-o", str(part)]
        subprocess.run(command, check=True)  # noqa: S603
        part.replace(library)

    def put(self, array: NDArray[Any]) -> HostBuffer:
        return HostBuffer(np.ascontiguousarray(array).view(np.uint8).reshape(-1).copy())

    def zeros(self, size: int) -> HostBuffer:
        return HostBuffer(np.zeros(size, np.uint8))

    def stream(self, rank: int) -> HostStream:
        del rank
        return HostStream()
