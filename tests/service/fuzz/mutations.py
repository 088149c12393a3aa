"""Bodies that were valid once: changed in their values, their shape and their bytes."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

SECRET = "zebra-7f3a91"  # in contexts, features and subjects: never to be repeated
PLAIN = 0.73194603  # a reward that is never to be repeated either

_NUMBERS: list[object] = [
    0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, 10**40, 1e308, -1e308, 5e-324, -0.0, 0.1, 1e-9,
    float("nan"), float("inf"), -float("inf"), True, False,
]  # fmt: skip
_TEXTS: list[object] = [
    "", " ", "a" * 199, "a" * 201, "a" * 10_000, "\x00", "\ud800", "\U0001f996" * 60, "\u202e",
    "../../etc/passwd", "<script>", "%00", "'; DROP TABLE service_event; --", "NaN", "null", "\n",
    "{{7*7}}", "é" * 250, "a\tb",
]  # fmt: skip
_SHAPES: list[object] = [None, [], {}, [[]], [None], {"": None}, [{}], {"a": {"a": {"a": 1}}}]


def bodies(base: object, rng: random.Random) -> Iterator[bytes]:
    """Without end: changed bodies, and from time to time the valid one."""
    while True:
        value = copy.deepcopy(base)
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            value = _changed(value, rng)
        data = _encoded(value, rng)
        if rng.random() < 0.3:
            data = rng.choice(_BYTES)(data, rng)
        yield data


def _places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _places(one, (*path, key))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from _places(one, (*path, place))


def _weird(rng: random.Random) -> object:
    kind = rng.choice((_NUMBERS, _NUMBERS, _TEXTS, _TEXTS, _SHAPES))
    found = copy.deepcopy(rng.choice(kind))
    if rng.random() < 0.03:
        depth = rng.choice((5, 20, 60, 150))  # deeper ones are made of bytes
        for _ in range(depth):
            found = [found] if rng.random() < 0.5 else {"a": found}
    return found


def _changed(value: Any, rng: random.Random) -> object:
    path = rng.choice(list(_places(value)))
    if not path:
        return value if rng.random() < 0.9 else _weird(rng)
    parent: Any = value
    for step in path[:-1]:
        parent = parent[step]
    last, how = path[-1], rng.random()
    if how < 0.6:
        parent[last] = _weird(rng)
    elif how < 0.7:
        del parent[last]
    elif how < 0.8 and isinstance(parent, list):
        parent.extend(copy.deepcopy(parent[last]) for _ in range(rng.choice((1, 2, 40, 1200))))
    elif isinstance(parent, dict):
        parent[rng.choice(("extra", "__proto__", "", "\x00", last))] = parent.pop(last)
    return value


def _encoded(value: object, rng: random.Random) -> bytes:
    ascii_only = rng.random() < 0.8
    text = json.dumps(value, ensure_ascii=ascii_only, indent=rng.choice((None, None, 1)))
    return text.encode("utf-8", "surrogatepass")


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _flip(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        if made:
            made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


def _insert(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(_PIECES) + data[place:]


def _twice(data: bytes, _: random.Random) -> bytes:
    """Every key twice."""
    return data[:1] + data[1:-1] + b"," + data[1:]


def _otherwise(data: bytes, rng: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-32", "utf-8-sig")), "replace")


def _deep(data: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((100, 2000, 100_000))
    return b"[" * depth + data + b"]" * rng.choice((0, depth))


def _deep_context(data: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((100, 900, 20_000))
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    return b'{"actions":[{"id":"a"}],"context":' + nested + b"}" + data[:0]


_PIECES = [b",", b"\x00", b"\xff\xfe", b"1e999", b"NaN", b"-Infinity", b"//", b"{", b"]", b'"']
_BYTES: list[Callable[[bytes, random.Random], bytes]] = [
    _cut, _cut, _flip, _flip, _insert, _insert, _twice, _otherwise, _deep, _deep_context,
]  # fmt: skip
