"""Something happens at the n-th place where Python would let a signal handler in.

CPython looks for signals when a function starts, when a loop goes round and after a call. An
exception that a handler raises then belongs to that instruction. A trace function can raise only
at the next one: so a place counts if both are covered by the same `try` or `with`. At the other
places, such as between the body of a `with` and the release of its lock, no signal gets in either.
"""

import dis
import functools
import itertools
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn, Self

_OPEN = ("RESUME", "JUMP_BACKWARD")


def _interrupt() -> NoReturn:
    raise KeyboardInterrupt


class Interrupting:
    """Raises KeyboardInterrupt, or does something else, at the n-th such place in some modules.

    Args:
        at: n.
        modules: where places are counted.
        do: what to do there.

    Attributes:
        happened: whether there was such a place.
    """

    def __init__(
        self,
        at: int,
        modules: Iterable[ModuleType],
        do: Callable[[], object] = _interrupt,
    ) -> None:
        self._left = at
        self._files = {module.__file__ for module in modules}
        self._do = do
        self._last: dict[FrameType, int] = {}
        self.happened = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        self._last.clear()

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401
        if frame.f_code.co_filename not in self._files or self.happened:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            last = self._last.get(frame)
            self._last[frame] = frame.f_lasti
            here = last is not None and (last, frame.f_lasti) in _places(frame.f_code)
            if here and not _dropped(frame):
                self._left -= 1
                if self._left == 0:
                    self.happened = True
                    self._do()
        elif event == "return":
            self._last.pop(frame, None)
        return self._trace


def _dropped(frame: FrameType | None) -> bool:
    """Whether Python would print and forget what is raised here."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


@functools.cache
def _places(code: CodeType) -> frozenset[tuple[int, int]]:
    """Pairs of instructions, one after the other, between which a signal may come."""
    table = dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def handler(offset: int) -> object:
        return next((one.target for one in table if one.start <= offset < one.end), None)

    found = set()
    known = list(dis.get_instructions(code))
    for one, following in itertools.pairwise(known):
        after = following.offset if one.opname != "JUMP_BACKWARD" else one.argval
        open_here = one.opname in _OPEN or one.opname.startswith("CALL")
        if open_here and handler(one.offset) == handler(after):
            found.add((one.offset, after))
    return frozenset(found)
