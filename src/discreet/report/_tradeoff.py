"""What a guarantee means for somebody who tries to tell two worlds apart, in numbers and a picture.

An adversary sees everything that is shown and guesses which of two neighbouring worlds it is. Of
all ways to guess, those with a rate of false alarms a have at most some rate of hits, and a
guarantee bounds it: by e^eps a + delta and by 1 - e^-eps (1 - delta - a) (Wasserman & Zhou 2010),
and for mu-GDP by Phi(Phi^-1(a) + mu) (Dong, Roth & Su 2022). The smallest of them holds.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

LEVELS = (0.01, 0.05, 0.1)  # rates of false alarms that are shown
_SIDE, _LEFT, _TOP, _ROOM = 220.0, 52.0, 14.0, 48.0
_INK, _FAINT, _CURVE = "#1b1b1b", "#d9d9d9", "#0072B2"


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """A guarantee, as a bound on what an adversary can find out.

    Attributes:
        epsilon: the bound on the log ratio of probabilities.
        delta: the probability outside that bound.
        mu: that of Gaussian differential privacy; None if it is not known.
    """

    epsilon: float
    delta: float
    mu: float | None

    @property
    def factor(self) -> float:
        """e^epsilon; infinite beyond floating point."""
        return math.exp(self.epsilon) if self.epsilon < 709 else math.inf

    def hits(self, alarms: float) -> float:
        """The largest rate of hits at this rate of false alarms."""
        shrunk = math.exp(-self.epsilon) * (1 - self.delta - alarms)
        bounds = [1.0, self.factor * alarms + self.delta if alarms else self.delta, 1 - shrunk]
        if self.mu is not None and 0 < alarms < 1:
            bounds.append(float(ndtr(ndtri(alarms) + self.mu)))
        return max(alarms, min(bounds))

    @property
    def right(self) -> float:
        """How often an even guess between the two worlds is right, at most."""
        apart = 1 - 2 * (1 - self.delta) / (self.factor + 1)
        if self.mu is not None:
            apart = min(apart, float(2 * ndtr(self.mu / 2) - 1))
        return (1 + apart) / 2

    def to_json(self) -> dict[str, object]:
        """The numbers that are shown."""
        return {
            "factor": self.factor if math.isfinite(self.factor) else None,
            "even_guess_right": self.right,
            "hits": [{"false_alarms": level, "hits": self.hits(level)} for level in LEVELS],
        }

    def svg(self) -> str:
        """The largest rate of hits over the rate of false alarms, as an element for a page."""
        grid = np.concatenate([[0.0], np.logspace(-6, -1, 60), np.linspace(0.1, 1.0, 91)[1:]])
        points = " ".join(f"{_across(x):.2f},{_up(self.hits(float(x))):.2f}" for x in grid)
        below = f"{_across(1):.2f},{_up(0):.2f} {_across(0):.2f},{_up(0):.2f}"
        ticks = "".join(_tick(at) for at in (0.0, 0.25, 0.5, 0.75, 1.0))
        half = self.hits(0.05)
        label = (
            "Rates of hits against rates of false alarms. Guessing blindly is the diagonal; at 5% "
            f"false alarms the bound is {percent(half)} hits."
        )
        width, height = _LEFT + _SIDE + 16, _TOP + _SIDE + _ROOM
        middle = _LEFT + _SIDE / 2
        return (
            f'<svg viewBox="0 0 {width:g} {height:g}" class="small" role="img" '
            f'aria-label="{label}" font-size="11" fill="{_INK}">'
            f'<polygon points="{points} {below}" fill="{_CURVE}" fill-opacity="0.12"/>{ticks}'
            f'<line x1="{_across(0)}" y1="{_up(0)}" x2="{_across(1)}" y2="{_up(1)}" '
            f'stroke="{_INK}" stroke-dasharray="4 3"/>'
            f'<polyline points="{points}" fill="none" stroke="{_CURVE}" stroke-width="2"/>'
            f'<text x="{_across(0.97):g}" y="{_up(0.05):g}" text-anchor="end">'
            "dashed: guessing blindly</text>"
            f'<text x="{middle:g}" y="{height - 8:g}" text-anchor="middle">false alarms</text>'
            f'<text transform="translate(13 {_TOP + _SIDE / 2:g}) rotate(-90)" '
            'text-anchor="middle">hits</text></svg>'
        )


def percent(share: float) -> str:
    """As a percentage, rounded up to the second decimal."""
    return f"{min(100.0, math.ceil(share * 1e4 - 1e-9) / 100):g}%"


def _across(share: float) -> float:
    return _LEFT + _SIDE * share


def _up(share: float) -> float:
    return _TOP + _SIDE * (1 - share)


def _tick(at: float) -> str:
    x, y = _across(at), _up(at)
    return (
        f'<line x1="{x:g}" y1="{_up(0):g}" x2="{x:g}" y2="{_up(1):g}" stroke="{_FAINT}"/>'
        f'<line x1="{_across(0):g}" y1="{y:g}" x2="{_across(1):g}" y2="{y:g}" stroke="{_FAINT}"/>'
        f'<text x="{x:g}" y="{_up(0) + 16:g}" text-anchor="middle">{at:.0%}</text>'
        f'<text x="{_across(0) - 6:g}" y="{y + 4:g}" text-anchor="end">{at:.0%}</text>'
    )
