"""`LinUCB`: a curator and a policy, which is what most users touch."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from numpy.typing import ArrayLike

from discreet.curator.curator import DEFAULT_MAX_PENDING, Curator
from discreet.curator.keeping import Keeper
from discreet.errors import CorruptFileError, DiscreetError, ParameterError
from discreet.mechanism import Mechanism, variants
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism.noise.sources import NoiseSource
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem, Setting
from discreet.release import Release, policies
from discreet.release import confidence as confidences
from discreet.release.confidence import Region
from discreet.release.ledger import Ledger


@dataclass(frozen=True)
class Decision:
    """What was chosen: ``index`` into the decision set, and the ``id`` its reward goes under.

    The id is a short string that may be stored with the request and handed back days later.
    """

    index: int
    id: str


class LinUCB:
    """A contextual linear bandit that learns under joint differential privacy.

    Paper: alg:linucb, with the perturbations of the chosen variant.

    Args:
        problem: the stated bounds.
        horizon: the most rounds that will ever be played; None, for variants that allow it, if
            that is not known: there is room for 10^12 then.
        privacy: the target; None only for variants that promise nothing.
        variant: a name from the table of variants, or a variant of your own.
        noise: 'exact', whole numbers drawn and added without rounding, or 'float', ordinary
            floating point, whose low bits can betray what it hides (docs/privacy.md). Wishart
            noise has to be asked for as 'float'.
        failure_prob: alpha, for all confidence statements together; if left out 1/horizon, or
            1e-8 without a horizon.
        policy: how a release becomes a choice.
        on_violation: what to do with actions and rewards outside the bounds: 'error', or 'clip'
            to scale them to the bound.
        max_pending: how many decisions may wait for a reward; beyond that the oldest is given up.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
        path: where to keep the learner from the start, as if `save` were called first.

    A call to ``choose`` costs O(K d^2), and O(d^3) more after a new release; ``learn`` O(d^2), for
    a release that times the buffers or levels, and with Wishart noise O(d^3) for each fresh draw.
    Calls from several threads are safe, copies are refused, and after any error the learner is as
    it was before.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        horizon: int | None,
        privacy: Privacy | None = None,
        variant: str | variants.Variant = "tight",
        noise: str = "exact",
        failure_prob: float | None = None,
        policy: policies.Policy | None = None,
        on_violation: str = "error",
        max_pending: int = DEFAULT_MAX_PENDING,
        noise_source: NoiseSource | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Calibrate the noise and draw its first values."""
        _require(problem, Problem, "problem", "Problem(...)")
        _require(privacy, Privacy | None, "privacy", "Privacy(epsilon=..., delta=...)")
        _require(policy, policies.Policy | None, "policy", "UCB(), Thompson() or greedy()")
        row = variants.named(variant) if isinstance(variant, str) else variant
        setting = Setting.over(problem, horizon, failure_prob, open_ended=row.open_ended)
        self._policy = policies.UCB() if policy is None else policy
        self._curator = Curator.begin(
            row.mechanism(setting, privacy, noise=noise),
            source=noise_source,
            supplied=row.perturbations,
            on_violation=on_violation,
            max_pending=max_pending,
        )
        self._region: tuple[Release, Region] | None = None
        if path is not None:
            self.save(path)

    @classmethod
    def _around(cls, curator: Curator, policy: policies.Policy) -> Self:
        self = cls.__new__(cls)
        self._policy, self._curator, self._region = policy, curator, None
        return self

    @property
    def problem(self) -> Problem:
        """The stated bounds."""
        return self.mechanism.setting.problem

    @property
    def mechanism(self) -> Mechanism:
        """The noise, its bounds and its setting: all public."""
        return self._curator.mechanism

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about everything this learner shows; prints as a sentence."""
        return self.mechanism.guarantee

    @property
    def policy(self) -> policies.Policy:
        """How a release becomes a choice."""
        return self._policy

    @property
    def rounds(self) -> int:
        """How many decisions have been made."""
        return self._curator.rounds

    @property
    def rows(self) -> int:
        """How many of them have had their reward."""
        return self._curator.rows

    @property
    def waiting(self) -> int:
        """How many decisions still wait for their reward."""
        return self._curator.waiting

    @property
    def release(self) -> Release:
        """All that the policy knows, safe to show under the guarantee."""
        return self._curator.release()

    @property
    def confidence(self) -> Region:
        """The confidence set that the current release supports."""
        release = self._curator.release()
        cached = self._region
        if cached is None or cached[0] is not release:
            cached = self._region = (release, confidences.region(release))
        return cached[1]

    def choose(self, actions: ArrayLike) -> Decision:
        """Pick one action of a (K, d) decision set for the current person."""
        admitted = self._curator.admit(actions)
        admitted.setflags(write=False)  # a policy must not undo the bounds
        index = self._policy.choose(self.confidence, admitted)
        if not 0 <= index < len(admitted):
            raise ParameterError("policy", "chose no action of the decision set; mend its `choose`")
        return Decision(index=index, id=self._curator.remember(admitted[index].copy()))

    def learn(self, decision: Decision | str, reward: float) -> None:
        """Take in the reward of a decision, or of its id: now, later, in any order, or never."""
        self._curator.learn(_id(decision), reward)

    def forget(self, decision: Decision | str) -> None:
        """Erase the action of a decision whose reward will not come."""
        self._curator.forget(_id(decision))

    @property
    def ledger(self) -> Ledger:
        """Every release up to now, with its digest and the privacy card: all public."""
        return self._curator.ledger

    @property
    def path(self) -> Path | None:
        """Where the learner is kept; None if it is in memory only."""
        return self._curator.path

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Keep the learner in files from now on; later, bring their snapshot up to date.

        Once kept, every `choose`, `learn` and `forget` is on the disk before it returns, and every
        release is in the ledger before anybody sees it, so a crash loses nothing that was
        acknowledged and `load` continues with the same noise. Beside ``path`` there are
        ``path.journal``, ``path.ledger`` and ``path.lock``; all can be read by their owner only.
        One learner at a time has them open. Nothing that exists is overwritten.
        """
        self._curator.save(path, {"policy": policies.to_json(self._policy)})

    def close(self) -> None:
        """Bring the files up to date and give up the lock on them; `load` continues from there.

        A kept learner that was closed does nothing more. One that is in memory only has nothing to
        close.
        """
        self._curator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # What ended the block stays what it was.
        with suppress(*(() if kind is None else (DiscreetError,))):
            self.close()

    def __repr__(self) -> str:
        return (
            f"LinUCB(variant={self.mechanism.variant!r}, dim={self.problem.dim}, "
            f"horizon={self.mechanism.setting.horizon}, rounds={self.rounds}, rows={self.rows}, "
            f"waiting={self.waiting})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled; see `save`."""
        self._curator.__reduce_ex__(protocol)


def load(
    path: str | os.PathLike[str],
    *,
    policy: policies.Policy | None = None,
    perturbations: Perturbations | None = None,
    noise_source: NoiseSource | None = None,
) -> LinUCB:
    """The learner that is kept at a path, continuing where its last call returned.

    It is kept there on, and locked: a second `load`, here or in another process, is refused until
    `LinUCB.close`. A state that is older than its ledger is refused for good: something was shown
    that it does not know of, and continuing from it would break the guarantee.

    Args:
        path: where `LinUCB.save` keeps the learner.
        policy: to use instead of the saved one; a policy of your own must be given again.
        perturbations: those of a learner with supplied perturbations; a file cannot hold them.
        noise_source: for tests only, as in `LinUCB`.
    """
    _require(policy, policies.Policy | None, "policy", "UCB(), Thompson() or greedy()")
    keeper, body, records, ledger = Keeper.open(path)
    try:
        rule = _rule(body, policy, perturbations)
        curator = Curator.open(
            keeper,
            body,
            records,
            ledger,
            extra={"policy": policies.to_json(rule)},
            source=noise_source,
            supplied=perturbations,
        )
    except BaseException:
        keeper.close()
        raise
    return LinUCB._around(curator, rule)  # noqa: SLF001  # the other way to construct one


def _rule(
    body: dict[str, Any], policy: policies.Policy | None, perturbations: Perturbations | None
) -> policies.Policy:
    """The policy to go on with, if all that a file cannot hold was given again."""
    if body.get("supplied") is True and perturbations is None:
        raise ParameterError("perturbations", "must be given again: a save file cannot hold them")
    if body.get("supplied") is not True and perturbations is not None:
        raise ParameterError("perturbations", "were not part of this learner; leave them out")
    if body.get("policy", ...) is None and policy is None:
        raise ParameterError("policy", "must be given again: a save file cannot hold your own")
    try:
        saved = policies.from_json(body["policy"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CorruptFileError(
            "path", "holds settings that do not fit together; restore it from a backup"
        ) from None
    return policy or saved or policies.UCB()


def _require(value: object, kind: Any, parameter: str, advice: str) -> None:  # noqa: ANN401
    if isinstance(value, type) or not isinstance(value, kind):
        raise ParameterError(parameter, f"is of type {type(value).__name__}; give {advice}")


def _id(decision: Decision | str) -> object:
    return decision.id if isinstance(decision, Decision) else decision
