"""What an audit found, as plain data."""

from dataclasses import asdict, dataclass
from typing import Any

CONSISTENT, VIOLATED, REFUSED = "consistent", "VIOLATED", "refused"
INAPPLICABLE, NO_CLAIM = "inapplicable", "no claim"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one attack found.

    Attributes:
        attack: its name.
        epsilon_lower: epsilon is at least this, with the stated confidence.
        claimed: the epsilon that is promised; None if nothing is.
        delta: the delta that both are about.
        confidence: the probability that ``epsilon_lower`` is true, whatever is attacked.
        trials: learners that were made for each world, or in all where there is one kind.
        seconds: how long it took. Trials that two attacks share count for the first.
        verdict: 'consistent' with the claim; 'VIOLATED'; 'refused' where the learner did not play
            along; 'inapplicable'; 'no claim'.
        note: a remark.
    """

    attack: str
    epsilon_lower: float
    claimed: float | None
    delta: float
    confidence: float
    trials: int
    seconds: float
    verdict: str
    note: str = ""


def verdict(outcome: str, epsilon_lower: float, claimed: float | None) -> str:
    """What a bound says of a claim."""
    if outcome:
        return outcome
    if claimed is None:
        return NO_CLAIM
    return VIOLATED if epsilon_lower > claimed else CONSISTENT


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What all attacks found.

    Attributes:
        variant: the name of what was attacked.
        guarantee: its promise, as a sentence.
        findings: one for each attack.
    """

    variant: str
    guarantee: str
    findings: tuple[Finding, ...]

    @property
    def violated(self) -> bool:
        """Whether some attack shows more than is claimed."""
        return any(found.verdict == VIOLATED for found in self.findings)

    @property
    def epsilon_lower(self) -> float:
        """The largest bound. With several attacks it is a little less sure than each."""
        return max((found.epsilon_lower for found in self.findings), default=0.0)

    def finding(self, attack: str) -> Finding:
        """What this attack found."""
        return next(found for found in self.findings if found.attack == attack)

    def to_json(self) -> dict[str, Any]:
        """All fields, and the verdict of all together."""
        return {**asdict(self), "violated": self.violated, "epsilon_lower": self.epsilon_lower}

    def table(self) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows for people."""
        columns = ["attack", "epsilon at least", "claimed", "trials", "seconds", "verdict"]
        rows = [
            (
                found.attack,
                f"{found.epsilon_lower:.3f}",
                "nothing" if found.claimed is None else f"{found.claimed:g}",
                f"{found.trials:,}",
                f"{found.seconds:.1f}",
                found.verdict,
            )
            for found in self.findings
        ]
        return columns, rows
