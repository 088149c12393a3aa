"""What a part made of actions that it saw lately, so that a row is not made of the same one twice.

The same actions are offered again and again, and to make rows of them takes most of the time of a
decision. Only actions are remembered, never contexts: in memory, so many at most and none that is
large; nothing of it is shown, copied or written. What is remembered is what would be made again.
"""

from collections.abc import Callable, Hashable
from sys import getsizeof

from discreet.features._rows import Row

_MOST = 2048  # actions of each part
_LARGEST = 4096  # bytes of one action
_LONGEST = 64  # entries of a dictionary or a list
_DEEPEST = 4
_SINGLE = frozenset({str, int, float, bool, type(None)})

Content = tuple[tuple[type, ...], tuple[Hashable, ...]]


class Remembered:
    """Rows by the content that they were made of. When it is full it begins anew."""

    def __init__(self) -> None:
        self._rows: dict[Content | None, Row] = {}

    def row(self, content: Content | None, value: object, make: Callable[[object], Row]) -> Row:
        """What ``make(value)`` is, or was.

        Args:
            content: what `content_of` says of the value.
            value: what was found.
            make: makes a row of a value; equal contents have equal rows.
        """
        found = self._rows.get(content)
        if found is None:
            found = make(value)
            if content is not None and _size(content) <= _LARGEST:
                if len(self._rows) >= _MOST:
                    self._rows.clear()
                self._rows[content] = found
        return found

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> tuple[type["Remembered"], tuple[()]]:
        """A copy remembers nothing, and so does a file."""
        return Remembered, ()


def content_of(value: object, depth: int = _DEEPEST) -> Content | None:
    """Something that two values share only if they have the same tokens.

    It has the types in it, because True and 1 are equal and have different texts. None stands for
    whatever is no plain dictionary, list or single value, or is long or deep.
    """
    inside: tuple[Hashable, ...]
    if type(value) is dict:
        inside = (*value, *value.values())
    elif type(value) is list:
        inside = tuple(value)
    else:
        return ((type(value),), (value,)) if type(value) in _SINGLE else None
    kinds = (type(value), *map(type, inside))
    if not depth or len(kinds) > _LONGEST:
        return None
    if not _SINGLE.issuperset(kinds[1:]):
        inside = tuple([content_of(one, depth - 1) for one in inside])
        if None in inside:
            return None
    return kinds, inside


def _size(content: Content) -> int:
    """Bytes of what is in it, about."""
    _, inside = content
    return sum([_size(one) if isinstance(one, tuple) else getsizeof(one) for one in inside])
