"""The one type that leaves the trusted side."""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _canonical, _tables
from discreet import _checks as checks
from discreet.errors import ParameterError
from discreet.mechanism import Mechanism, _codec
from discreet.mechanism._prospects import amounts_at
from discreet.mechanism._read_only import read_only
from discreet.privacy import Guarantee
from discreet.release.confidence import Region, region
from discreet.release.posterior import Posterior, posterior

F64 = NDArray[np.float64]

_FORMAT = "discreet-release-1"
_STRANGE = (AttributeError, MemoryError, RecursionError, struct.error)  # of hostile documents


@dataclass(frozen=True, eq=False, kw_only=True)
class Release:
    """A noisy view of all rows so far: what may be shown, cached, logged or shipped.

    Attributes:
        number: how many releases there have been, this one included; 0 before the first.
        rows: how many rows are in it.
        gram: the noisy Gram matrix, the weighted sum of actions' outer products, with the shift
            included, shape (d, d). V_t in the paper, where all weights are one.
        moment: the noisy sum of weight times action times reward, shape (d,). u~_t in the paper.
        spread: how much larger its noise is than one draw; 0 without noise.
        weight: the total weight of its rows: their number, unless older ones count less.
        mechanism: the noise in it, its bounds and the setting, all public.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> bandit.release
        Release(number=0, rows=0, dim=2, variant='windows')
    """

    number: int
    rows: int
    gram: F64
    moment: F64
    spread: float
    weight: float
    mechanism: Mechanism

    def __post_init__(self) -> None:
        """Make the arrays read-only: a release is a fact."""
        for name in ("gram", "moment"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    @property
    def guarantee(self) -> Guarantee:
        """What holds for this release together with all others of the same learner."""
        return self.mechanism.guarantee

    @cached_property
    def posterior(self) -> Posterior:
        """What the release says about the parameter, given the known law of its noise."""
        return posterior(self)

    @cached_property
    def cautious(self) -> Posterior:
        """The same with the prior as it is stated, for intervals.

        The posterior that is played takes the parameter to be small if the best-known directions
        say so; others may be larger.
        """
        return posterior(self, halvings=0)

    @cached_property
    def confidence(self) -> Region:
        """The confidence set that is proven to hold the parameter."""
        return region(self)

    def to_json(self) -> dict[str, Any]:
        """The release as plain JSON, complete: `from_json` makes the same of it, to the last bit.

        ``gram`` is a list of square matrices, one for each of the problem's blocks.
        """
        return {
            "format": _FORMAT,
            "digest": fingerprint(self),
            "number": self.number,
            "rows": self.rows,
            "spread": self.spread,
            "weight": self.weight,
            "gram": [self.gram[part, part].tolist() for part in _parts(self.mechanism)],
            "moment": self.moment.tolist(),
            "mechanism": _codec.to_json(self.mechanism),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any] | str | bytes) -> Self:
        """The release of a document, if it fits together and to its digest.

        Whether it is a release of some learner, and the mechanism that learner's, only the
        learner's ledger can say: `Ledger.holds`.

        Args:
            document: what `to_json` gives, or that as text.

        Returns:
            The release.

        Raises:
            ParameterError: it is no release, or was altered.
        """
        try:
            return cls._read(document)
        except (LookupError, TypeError, ValueError, ArithmeticError, *_STRANGE) as error:
            raise ParameterError(
                "document", "is no release, or was altered; get it again from where it was shown"
            ) from error

    @classmethod
    def _read(cls, document: Mapping[str, Any] | str | bytes) -> Self:
        if isinstance(document, str):
            document = document.encode("utf-8")
        entry = _canonical.parse(document) if isinstance(document, bytes) else document
        if entry["format"] != _FORMAT:
            raise ValueError("another format")
        mechanism = _codec.from_json(entry["mechanism"])
        dim, parts = mechanism.setting.problem.dim, _parts(mechanism)
        moment = np.array(entry["moment"], dtype=np.float64)
        if moment.shape != (dim,):  # before anything of a size that is only said is allocated
            raise ValueError("another shape")
        gram = np.zeros((dim, dim))
        for part, block in zip(parts, entry["gram"], strict=True):
            found = np.array(block, dtype=np.float64)
            if found.shape != gram[part, part].shape:
                raise ValueError("another shape")
            gram[part, part] = found
        if not (np.isfinite(gram).all() and np.isfinite(moment).all()):
            raise ValueError("not finite")
        release = cls(
            number=checks.count("number", entry["number"], least=0),
            rows=checks.count("rows", entry["rows"], least=0),
            gram=gram,
            moment=moment,
            spread=checks.at_least("spread", entry["spread"], 0.0),
            weight=checks.at_least("weight", entry["weight"], 0.0),
            mechanism=mechanism,
        )
        if entry["digest"] != fingerprint(release):
            raise ValueError("another digest")
        release._require_public_facts()
        return release

    def _require_public_facts(self) -> None:
        """ValueError unless rows, spread and weight are what number and mechanism make them."""
        schedule = self.mechanism.schedule
        earlier = schedule.count(self.rows - 1) if self.rows else -1
        if schedule.count(self.rows) != self.number or (earlier == self.number):
            raise ValueError("no release has so many rows")
        expected = (0.0, float(self.rows))
        if self.number:
            numbers, rows = np.array([self.number]), np.array([self.rows])
            spreads, weights = amounts_at(self.mechanism, numbers, rows)
            expected = (float(spreads[0]), float(weights[0]))
        if not np.allclose((self.spread, self.weight), expected, rtol=1e-6, atol=0.0):
            raise ValueError("another amount of noise")

    def __repr__(self) -> str:
        return (
            f"Release(number={self.number}, rows={self.rows}, dim={self.moment.size}, "
            f"variant={self.mechanism.variant!r})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("rows", f"{self.rows:,}"),
            ("features", str(self.moment.size)),
            ("total weight of rows", f"{self.weight:,.6g}"),
            ("noise, in multiples of one draw", f"{self.spread:.6g}"),
            ("variant", self.mechanism.variant),
        ]
        return _tables.as_html(
            (), rows, title=f"Release {self.number:,}", notes=[str(self.guarantee)]
        )


def fingerprint(release: Release) -> str:
    """The digest of a release's values: SHA-256 of all its numbers, little-endian, 64 bits each."""
    head = struct.pack("<3q", release.number, release.rows, release.moment.size)
    found = hashlib.sha256(head)
    for part in (release.gram, release.moment):
        found.update(part.astype("<f8", order="C", copy=False).data)
    return found.hexdigest()


def _parts(mechanism: Mechanism) -> list[slice]:
    """Where the blocks are."""
    ends = accumulate(mechanism.setting.problem.blocks, initial=0)
    return [slice(start, stop) for start, stop in pairwise(ends)]
