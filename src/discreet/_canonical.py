"""JSON with one spelling and one reading, and chains of digests over it.

Files that have to be checked byte by byte are made of this. It knows nothing of what they mean.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

LONGEST_NUMBER = 400  # characters; longer ones take long to read and are never written


def dump(value: Any) -> bytes:  # noqa: ANN401  # any JSON
    """The one spelling: sorted keys, no spaces, ASCII. ValueError or TypeError if it has none."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return text.encode("ascii")


def digest(value: object) -> str:
    """The SHA-256 of the one spelling, in hexadecimal."""
    return hashlib.sha256(dump(value)).hexdigest()


def parse(data: bytes) -> Any:  # noqa: ANN401  # any JSON
    """What the bytes say; ValueError, and no other error, unless they say one thing only.

    Refused besides what is not JSON: a key given twice, NaN and infinity, numbers too large for a
    float or absurdly long, half a surrogate pair, and nesting that Python cannot follow.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short,
        )
        if b"\\ud" in data.lower():
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def link(previous: str, content: bytes) -> str:
    """The next digest of a chain: SHA-256 over the one before and the content."""
    return hashlib.sha256(previous.encode("ascii") + b"\n" + content).hexdigest()


def whole(data: bytes) -> int:
    """How many of the bytes are finished lines, each of them a JSON object.

    A crash while a line is appended leaves it without its end, or with zeros where a block never
    reached the disk. Only the last line can be so: the one before was on the disk already. Zeros
    after the end of an object are no such thing.
    """
    end = data.rfind(b"\n") + 1
    last = data.rfind(b"\n", 0, max(0, end - 1)) + 1
    written, zeros, _ = data[last:end].partition(b"\0")
    return last if zeros and not written.endswith(b"}") else end


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text) if len(text) <= LONGEST_NUMBER else math.inf
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _short(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number is too long")
    return int(text)
