"""How numbers and times are written on pages, and small drawings in SVG."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from discreet.service.dashboard._learning import Band

_NONE, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
_SPARK = (160.0, 40.0)  # width and height of a sparkline, in its own units
_UNITS = ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def count(value: float | None) -> str:
    """A whole number with separators."""
    return _NONE if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits; no exponent where a person would write none."""
    if value is None or not math.isfinite(value):
        return _NONE
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text.replace("-", _MINUS)
    if 1e3 <= abs(value) < 1e12:
        return f"{value:,.0f}".replace("-", _MINUS)
    mantissa, exponent = text.split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{power}" if mantissa == "1" else f"{mantissa} · 10{power}".replace("-", _MINUS)


def fixed(value: float | None, digits: int = 3) -> str:
    """A number with so many digits behind the point."""
    return _NONE if value is None else f"{value:.{digits}f}".replace("-", _MINUS)


def digits(rule: Mapping[str, Any]) -> int:
    """How many digits behind the point a reward has: about a thousandth of what is possible."""
    span = float(rule["high"]) - float(rule["low"])
    return max(0, min(9, 3 - math.floor(math.log10(span))))


def reward(value: float | None, rule: Mapping[str, Any]) -> str:
    """A reward, or a difference of rewards, as exactly as its bounds make sense of.

    Args:
        value: the number.
        rule: with the bounds of rewards, ``low`` and ``high``.
    """
    return _NONE if value is None else f"{value:,.{digits(rule)}f}".replace("-", _MINUS)


def percent(value: float | None) -> str:
    """A share as a percentage."""
    return _NONE if value is None else f"{100 * value:.1f}%"


def moment(value: float | None) -> Markup:
    """A time, in UTC; the script on the page writes it in the reader's own zone."""
    if not value:
        return escape(_NONE)
    when = datetime.fromtimestamp(value, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        when.strftime("%Y-%m-%dT%H:%M:%SZ"), when.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def duration(seconds: float) -> str:
    """A length of time in the largest unit that fits."""
    for size, name in _UNITS:
        if seconds >= size:
            amount = f"{seconds / size:.3g}"
            return f"{amount} {name}" + ("" if amount == "1" else "s")
    return f"{seconds:.3g} seconds"


def sparkline(bands: Sequence[Band | None], *, low: float, high: float) -> Markup:
    """A small curve with its noise band, as SVG.

    Args:
        bands: one for each release, in order.
        low: the bottom of the drawing.
        high: its top.
    """
    width, height = _SPARK
    drawn = [band for band in bands if band is not None]
    if len(drawn) < 2:
        return Markup("")
    reach = (high - low) or 1.0

    def place(at: int, value: float) -> str:
        x = width * at / (len(drawn) - 1)
        return f"{x:.1f},{2 + (height - 4) * (1 - (value - low) / reach):.1f}"

    upper = [place(at, band.high) for at, band in enumerate(drawn)]
    lower = [place(at, band.low) for at, band in enumerate(drawn)]
    curve = [place(at, band.estimate) for at, band in enumerate(drawn) if band.estimate is not None]
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true">'
        '<polygon class="band" points="{}"/><polyline class="curve" points="{}"/></svg>'
    ).format(int(width), int(height), " ".join(upper + lower[::-1]), " ".join(curve))


def interval(
    low: float, middle: float | None, high: float, *, reach: tuple[float, float]
) -> Markup:
    """An interval on a line from one end of ``reach`` to the other, as SVG of any width.

    Args:
        low: the lower end.
        middle: the estimate, if there is one.
        high: the upper end.
        reach: the ends of the line.
    """
    first, last = reach
    span = (last - first) or 1.0

    def place(value: float) -> float:
        return round(100 * (min(last, max(first, value)) - first) / span, 2)

    zero = (
        Markup('<line class="zero" x1="{0}%" x2="{0}%" y1="0" y2="24"/>').format(place(0.0))
        if first < 0.0 < last
        else ""
    )
    dot = (
        Markup('<circle class="dot" cx="{}%" cy="12" r="4.5"/>').format(place(middle))
        if middle is not None
        else ""
    )
    return Markup(
        '<svg class="interval" aria-hidden="true"><line class="axis" x1="0" x2="100%" y1="12" '
        'y2="12"/>{}<rect class="band" x="{}%" y="8" width="{}%" height="8" rx="4"/>{}</svg>'
    ).format(zero, place(low), max(0.5, round(place(high) - place(low), 2)), dot)


def short(digest: str | None) -> Markup:
    """The beginning of a digest, with all of it as a title."""
    if not digest:
        return escape(_NONE)
    return Markup('<code title="{}">{}…</code>').format(digest, escape(digest[:12]))


def breakable(name: str) -> Markup:
    """The name of a coordinate, which may go on in a new line after its punctuation."""
    parts = re.split(r"(?<=[=*/.])", name)
    return Markup("<wbr>").join(parts)


FILTERS = {
    "breakable": breakable,
    "count": count,
    "digits": digits,
    "number": number,
    "fixed": fixed,
    "percent": percent,
    "reward": reward,
    "moment": moment,
    "duration": duration,
    "short": short,
}
