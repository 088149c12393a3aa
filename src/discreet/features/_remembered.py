"""A bounded cache of the rows made from actions. Contexts are never cached.

The same actions are offered again and again, and to make rows of them takes most of the time of a
decision. The cache is in memory and has limits on how many entries it holds and how large each is;
nothing of it is shown, copied or written. A cached entry is what would be made again.
"""

from collections.abc import Callable, Hashable
from math import copysign
from sys import getsizeof
from typing import Generic, TypeVar

_LONGEST = 64  # entries of a dictionary or a list in an action
_MOST_VALUES = 2048  # in a list of actions
_DEEPEST = 4
_SINGLE = frozenset({str, int, float, bool, type(None)})
_DESCRIBED = {"id", "features"}

Content = tuple[tuple[type, ...], tuple[Hashable, ...]]
T = TypeVar("T")


class Remembered(Generic[T]):
    """What was made, by the content that it was made of. When it is full it begins anew.

    Args:
        most: how many are remembered.
        largest: of about how many bytes the content may be.
    """

    def __init__(self, most: int, largest: int) -> None:
        self._most = most
        self._largest = largest
        self._found: dict[Content | None, T] = {}

    def made(self, content: Content | None, value: object, make: Callable[[object], T]) -> T:
        """What ``make(value)`` is, or was.

        Args:
            content: what there is in the value; None if it is not to be remembered.
            value: what was found.
            make: makes the same of equal contents.
        """
        found = self._found.get(content)
        if found is None:
            found = make(value)
            if content is not None and _size(content) <= self._largest:
                if len(self._found) >= self._most:
                    self._found.clear()
                self._found[content] = found
        return found

    def __len__(self) -> int:
        return len(self._found)

    def __reduce__(self) -> tuple[type["Remembered[T]"], tuple[int, int]]:
        """A copy remembers nothing, and so does a file."""
        return Remembered, (self._most, self._largest)


def content_of(value: object, depth: int = _DEEPEST) -> Content | None:
    """A hashable key for a value: equal keys imply equal tokens.

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


def content_of_list(actions: object, most: int) -> Content | None:
    """Something that two lists of actions share only if no part can tell them apart.

    None if they are not all of the form {'id': ..., 'features': {...}}, with single values, or if
    there are more than ``most``. Nor is zero with a minus remembered: it equals zero, and numeric
    parts tell them apart.
    """
    if type(actions) is not list or len(actions) > most:
        return None
    inside: list[Hashable] = []
    for one in actions:
        if type(one) is not dict or one.keys() != _DESCRIBED or type(one["features"]) is not dict:
            return None
        features = one["features"]
        inside += (len(features), one["id"], *features, *features.values())
    kinds = tuple(map(type, inside))
    if len(kinds) > _MOST_VALUES or not _SINGLE.issuperset(kinds) or _negative_zero(inside):
        return None
    return kinds, tuple(inside)


def _negative_zero(inside: list[Hashable]) -> bool:
    if 0.0 not in inside:
        return False
    zeros = [one for one in inside if one == 0.0]
    return any(type(one) is float and copysign(1.0, one) < 0.0 for one in zeros)


def _size(content: Content) -> int:
    """Bytes of what is in it, about."""
    _, inside = content
    return sum([_size(one) if isinstance(one, tuple) else getsizeof(one) for one in inside])
