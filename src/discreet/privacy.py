"""What is asked for (`Privacy`) and what holds (`Guarantee`), as plain data."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from discreet import _checks as checks
from discreet import _tables
from discreet.errors import ParameterError

_PROTECTS = ("rows", "rewards")
"""What can be protected: decision sets and rewards, or rewards alone."""

_REWARD = "reward"  # what a person brings if all else is public


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """A target: (epsilon, delta)-joint differential privacy, or that of rewards alone.

    Epsilon and delta have no default.

    Attributes:
        epsilon: the bound on the log ratio of probabilities.
        delta: the probability outside that bound.
        contributions_per_user: how many rounds of one person may count. A learner that is told
            who rounds are for (``subject``) sees to it that no more do; otherwise it is up to you.
        neighbours: 'replacement' of what a person brings, or 'add-remove': that it counts, or
            does not. Variants with the paper's constants know replacement of one round only.
        protects: 'rows', decision sets and rewards; or 'rewards' alone, where decision sets,
            actions and which rounds count are public anyway, and depend on rewards only through
            what is shown (docs/privacy.md). The Gram matrix is then exact, and only the moment
            has noise. Variants `windows` and `tight` can do that. Under 'add-remove' a reward
            that does not count is one at the centre.

    Examples:
        >>> import discreet
        >>> discreet.Privacy(epsilon=1, delta=1e-6).contributions_per_user
        1
        >>> three = discreet.Privacy(epsilon=1, delta=1e-6, contributions_per_user=3)
    """

    epsilon: float
    delta: float
    contributions_per_user: int = 1
    neighbours: str = "replacement"
    protects: str = "rows"

    def __post_init__(self) -> None:
        """Check that all of them are in range."""
        epsilon = checks.within("epsilon", checks.positive("epsilon", self.epsilon), 1e-6, 1e12)
        delta = checks.within("delta", checks.probability("delta", self.delta), 1e-100, 1.0)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        rounds = checks.count("contributions_per_user", self.contributions_per_user)
        checks.within("contributions_per_user", rounds, 1, 10**9)
        object.__setattr__(self, "contributions_per_user", rounds)
        checks.one_of("neighbours", self.neighbours, ("replacement", "add-remove"))
        checks.one_of("protects", self.protects, _PROTECTS)

    def require_rows(self, what: str) -> None:
        """Refuse a target for rewards alone.

        Args:
            what: that which protects whole rows only, for the message.

        Raises:
            ParameterError: only rewards are to be protected.
        """
        if self.protects != "rows":
            raise ParameterError(
                "protects", f"is {self.protects!r}, but {what} protects whole rows; leave it out"
            )


def required(variant: str, privacy: Privacy | None) -> Privacy:
    """The target, which this variant needs.

    Args:
        variant: the name of the variant, for the message.
        privacy: the target.

    Returns:
        The target, which is not None.

    Raises:
        ParameterError: if there is none.
    """
    if privacy is None:
        raise ParameterError(
            "privacy", f"is missing; variant {variant!r} needs Privacy(epsilon=..., delta=...)"
        )
    return privacy


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What holds for everything released, and why.

    Neighbours: two streams that differ in one person's rounds, one unless stated otherwise: in
    decision set and reward under replacement, in whether the row counts (or is one of zeros)
    under add-remove; if rewards alone are protected, in the reward, or in whether it counts (or is
    at the centre). What is bounded: the joint distribution of all releases, hence of everything
    shown to everyone but that person; of rewards alone, of everything that is shown.

    Attributes:
        epsilon: the bound on the log ratio of probabilities; None if nothing is promised.
        delta: the probability outside that bound; None if nothing is promised.
        argument: the proof in one phrase, or why there is none.
        neighbours: the neighbour relation.
        contributions_per_user: rounds in which one person may take part.
        record: what a person brings to a round.
        joint: whether it is about what all others see; otherwise about all that is shown.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> bandit.guarantee.epsilon, bandit.guarantee.delta
        (1.0, 1e-06)
        >>> str(bandit.guarantee)[:40]
        '(1, 1e-06)-joint differential privacy: r'
    """

    epsilon: float | None
    delta: float | None
    argument: str
    neighbours: str = "replacement"
    contributions_per_user: int = 1
    record: str = "decision set and reward"
    joint: bool = True

    @classmethod
    def nothing(cls, reason: str) -> "Guarantee":
        """A guarantee that promises nothing.

        Args:
            reason: why nothing is promised.

        Returns:
            A guarantee without numbers.
        """
        return cls(epsilon=None, delta=None, argument=reason)

    @classmethod
    def meeting(cls, privacy: Privacy, argument: str) -> "Guarantee":
        """The target, met for this reason.

        Args:
            privacy: the target.
            argument: the proof in one phrase.

        Returns:
            The guarantee.
        """
        return cls(
            epsilon=privacy.epsilon,
            delta=privacy.delta,
            argument=argument,
            neighbours=privacy.neighbours,
            contributions_per_user=privacy.contributions_per_user,
            **_subject_of(privacy.protects),
        )

    @property
    def protects(self) -> str:
        """What is protected: 'rewards' if a person's record is the reward alone, else 'rows'."""
        return "rewards" if self.record == _REWARD else "rows"

    @property
    def private(self) -> bool:
        """Whether anything is promised at all."""
        return self.epsilon is not None

    def voided(self, reason: str) -> "Guarantee":
        """The same mechanism with its promise withdrawn.

        Args:
            reason: why it is withdrawn.

        Returns:
            A guarantee without numbers, about the same neighbours.
        """
        return replace(self, epsilon=None, delta=None, argument=reason)

    def to_json(self) -> dict[str, Any]:
        """All fields, what is protected, and the sentence."""
        return {**asdict(self), "protects": self.protects, "text": str(self)}

    def __str__(self) -> str:
        if not self.private:
            return f"No privacy is promised: {self.argument}."
        rounds = self.contributions_per_user
        where = "in one round" if rounds == 1 else f"in up to {rounds} rounds"
        left_out = "rows" if self.protects == "rows" else "rewards"
        change = (
            f"replacing one person's {self.record} {where}"
            if self.neighbours == "replacement"
            else f"leaving out one person's {left_out} {where}"
        )
        exception = f", up to a probability of {self.delta:.12g}" if self.delta else ""
        if self.protects == "rewards":
            exception += (
                "; decision sets, actions and which rounds count are public, and may depend on "
                "rewards only through what is shown"
            )
        kind = "joint differential privacy" if self.joint else "differential privacy"
        return (
            f"({self.epsilon:.12g}, {self.delta:.12g})-{kind}: {change} multiplies the "
            "probability of anything that "
            f"{'all other people see' if self.joint else 'is shown'}, now or later, by at most "
            f"e^{self.epsilon:.12g}{exception}. Why: {self.argument}."
        )

    def _repr_html_(self) -> str:
        if not self.private:
            return _tables.as_html((), [], notes=[str(self)])
        rows = [
            ("epsilon", f"{self.epsilon:.12g}"),
            ("delta", f"{self.delta:.12g}"),
            ("neighbours", self.neighbours),
            ("rounds of a person", f"{self.contributions_per_user:,}"),
            ("what a person brings", self.record),
            ("about", "what all others see" if self.joint else "all that is shown"),
        ]
        if self.protects == "rewards":
            rows.append(("public", "decision sets, actions, which rounds count"))
        return _tables.as_html((), rows, notes=[str(self)])


def _subject_of(protects: str) -> dict[str, Any]:
    """What a guarantee says of the record that is protected, and from whom."""
    if protects == "rows":
        return {}
    # An action is chosen before its reward comes: so even the person's own action may be seen.
    return {"record": _REWARD, "joint": False}
