"""`LinUCB`: a curator and a policy, which is what most users touch."""

import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.budget import Budget
from discreet.curator import opening
from discreet.curator import store as stores
from discreet.curator._clipped import Clipped
from discreet.curator._subjects import Forgotten as Forgotten  # noqa: PLC0414  # for users
from discreet.curator._subjects import Subject
from discreet.curator.curator import DEFAULT_MAX_PENDING, Curator
from discreet.errors import (
    CorruptFileError,
    DiscreetError,
    ParameterError,
    ShapeError,
    UninformedWarning,
)
from discreet.mechanism import Mechanism, variants
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism.noise.sources import NoiseSource
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem
from discreet.release import Release, policies
from discreet.release._diagnosis import Diagnosis, diagnosis
from discreet.release._offered import (
    A_POLICY,
    Some,
    offered,
    offered_in_each,
    picked,
    picked_of_each,
)
from discreet.release.confidence import Region
from discreet.release.ledger import Ledger
from discreet.release.posterior import Estimate, Posterior

Place = stores.Place
_Item = TypeVar("_Item")

_A_BUDGET = "Budget(epsilon=..., delta=...)"


@dataclass(frozen=True)
class Decision:
    """What was chosen, how probable that was, and the id that its reward goes under.

    Attributes:
        index: its place in the decision set.
        id: what its reward goes under: a short string that may be stored with the request and
            handed back days later.
        probability: with which the policy chooses this action, given the release and the decision
            set; None if the policy does not say.

    Examples:
        >>> bandit = LinUCB(
        ...     Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1),
        ...     horizon=1_000,
        ...     privacy=Privacy(epsilon=1, delta=1e-6),
        ... )
        >>> decision = bandit.choose([[1.0, 0.0], [0.0, 1.0]])
        >>> decision.probability  # no release yet: uniform
        0.5
        >>> bandit.learn(decision.id, 0.5)  # the id is enough
    """

    index: int
    id: str
    probability: float | None = None


class LinUCB:
    """A contextual linear bandit that learns under differential privacy, joint or of rewards.

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
        memory: how many rows are remembered, for worlds that change: after so many more rows one
            counts e times less. None to forget nothing (docs/drift.md).
        policy: how a release becomes a choice; the variant's own if left out.
        on_violation: what to do with actions and rewards outside the bounds: 'error', or 'clip'
            to scale them to the bound.
        max_pending: how many decisions may wait for a reward; beyond that the oldest is given up,
            with a `GivenUpWarning`, and counted in `given_up`.
        noise_source: for tests and simulations only. Noise comes from the operating system
            otherwise; with a seeded source the guarantee is void and says so.
        path: where to store the learner from the start, as if `save` were called first: a file,
            or a PostgreSQL database as ``postgresql://user@host/database#name``.
        budget: what this learner shares with others that are about the same people. It is
            registered there, or refused (`BudgetExceededError`) before it is stored anywhere.

    Whoever comes more than once has an id, a ``subject``: any str, bytes or int that is the same
    each time. Of one subject's rows as many count as ``privacy.contributions_per_user`` says; a row
    beyond that is one of zeros, which takes its place. Rows without a subject are taken to be
    different people's. Ids are hashed with a key of the learner's own, and never stored.

    A call to ``choose`` costs O(K d^2), and O(d^3) more after a new release; ``learn`` O(d^2), for
    a release that times the buffers or levels, and with Wishart noise O(d^3) for each fresh draw.
    Calls from several threads are safe, and share the commits of a stored learner. Copies are
    refused, and so is a call from a signal handler or a finalizer that interrupted another call on
    the same thread. After any error the learner is as it was before.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> decision = bandit.choose([[1.0, 0.0], [0.0, 1.0]])
        >>> bandit.learn(decision, reward=0.5)
        >>> bandit.rows
        1
    """

    def __init__(
        self,
        problem: Problem,
        *,
        horizon: int | None,
        privacy: Privacy | None = None,
        variant: str | variants.Variant = "windows",
        noise: str = "exact",
        failure_prob: float | None = None,
        memory: int | None = None,
        policy: policies.Policy | None = None,
        on_violation: str = "error",
        max_pending: int = DEFAULT_MAX_PENDING,
        noise_source: NoiseSource | None = None,
        path: Place | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Calibrate the noise and draw its first values."""
        _require(problem, Problem, "problem", "Problem(...)")
        _require(privacy, Privacy | None, "privacy", "Privacy(epsilon=..., delta=...)")
        row = variants.named(variant) if isinstance(variant, str) else variant
        mechanism = variants.calibrate(
            row,
            problem,
            horizon=horizon,
            privacy=privacy,
            failure_prob=failure_prob,
            noise=noise,
            memory=memory,
        )
        self._begin(
            mechanism,
            policy=policy,
            supplied=row.perturbations,
            on_violation=on_violation,
            max_pending=max_pending,
            noise_source=noise_source,
            path=path,
            budget=budget,
        )

    @classmethod
    def from_mechanism(
        cls,
        mechanism: Mechanism,
        *,
        policy: policies.Policy | None = None,
        on_violation: str = "error",
        max_pending: int = DEFAULT_MAX_PENDING,
        noise_source: NoiseSource | None = None,
        path: Place | None = None,
        budget: Budget | None = None,
    ) -> Self:
        """A learner with noise that is calibrated already.

        Args:
            mechanism: the noise, its bounds and its setting.
            policy: as for `LinUCB`, and so are the others.
            on_violation: 'error' or 'clip'.
            max_pending: how many decisions may wait.
            noise_source: for tests and simulations only.
            path: where to store it from the start.
            budget: what it shares with others.

        Returns:
            A learner that has the mechanism's guarantee.

        Raises:
            ParameterError: the mechanism's noise is supplied by the caller, and is not here.
        """
        _require(mechanism, Mechanism, "mechanism", "a Mechanism, such as LinUCB(...).mechanism")
        if mechanism.guarantee.private and mechanism.noise is None:
            raise ParameterError(
                "mechanism",
                "promises privacy and has no noise of its own; pass LinUCB(variant=Supplied(...)) "
                "with its perturbations instead",
            )
        self = cls.__new__(cls)
        self._begin(
            mechanism,
            policy=policy,
            supplied=None,
            on_violation=on_violation,
            max_pending=max_pending,
            noise_source=noise_source,
            path=path,
            budget=budget,
        )
        return self

    def _begin(
        self,
        mechanism: Mechanism,
        *,
        policy: policies.Policy | None,
        supplied: Perturbations | None,
        on_violation: str,
        max_pending: int,
        noise_source: NoiseSource | None,
        path: Place | None,
        budget: Budget | None,
    ) -> None:
        _require(policy, policies.Policy | None, "policy", A_POLICY)
        _require(budget, Budget | None, "budget", _A_BUDGET)
        _require_source(noise_source)
        curator = opening.begin(
            mechanism,
            source=noise_source,
            supplied=supplied,
            on_violation=on_violation,
            max_pending=max_pending,
        )
        self._attach(curator, policies.settled(policy, mechanism))
        with nullcontext() if budget is None else budget.spending(self):
            if path is not None:
                self.save(path)

    def _attach(self, curator: Curator, policy: policies.Policy) -> None:
        self._curator, self._policy = curator, policy
        self._diagnosed: Release | None = None  # the release that was last looked at
        self._warned = False

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
    def given_up(self) -> int:
        """How many decisions were given up because more than ``max_pending`` waited."""
        return self._curator.given_up

    @property
    def over_cap(self) -> int:
        """How many rows came beyond ``contributions_per_user`` of their subject, and are zeros.

        It depends on who came how often, and has no noise: it is for the curator's eyes. It is in
        no release, card or ledger.
        """
        return self._curator.over_cap

    @property
    def release(self) -> Release:
        """All that the policy knows, safe to show under the guarantee."""
        return self._curator.release

    @property
    def confidence(self) -> Region:
        """The confidence set that the current release is proven to support."""
        return self._curator.release.confidence

    @property
    def posterior(self) -> Posterior:
        """What the current release says about the parameter: a model, and no theorem.

        It is what choices are made from, and lets the release say how long the parameter is.
        `estimate` takes ``theta_norm`` as it was stated, so that its intervals hold.
        """
        return self._curator.release.posterior

    def estimate(self, actions: ArrayLike, *, level: float = 0.95) -> Estimate:
        """What is thought of actions' mean rewards. Changes nothing, and costs no privacy.

        Intervals are Bayesian, and as wide as the stated ``theta_norm`` makes them where little is
        known; for ones that are proven see ``confidence.widths``.

        Args:
            actions: shape (K, d).
            level: the probability that the posterior gives an interval.

        Returns:
            ``estimate``, ``low`` and ``high``, an entry for each action.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: no decision set could be like this.
        """
        checked = self._curator.bounded(actions)
        return self._curator.release.cautious.estimate(checked, level=level)

    @property
    def diagnosis(self) -> Diagnosis:
        """How much the current release says, in words and numbers: all public."""
        return diagnosis(self._curator.release)

    def diagnose(self, sets: Iterable[ArrayLike]) -> Diagnosis:
        """The `diagnosis`, for decision sets of yours instead of made-up ones.

        Args:
            sets: decision sets, shape (K, d) each. A diagnosis of sets is as public as they are:
                give sets that are nobody's, such as all actions for a made-up person.

        Returns:
            The diagnosis; its ``evidence.separated`` is the share of these sets.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: a decision set cannot be used.
        """
        given = _listed("sets", sets, "decision sets")
        checked = [self._curator.bounded(actions) for actions in given]
        return diagnosis(self._curator.release, checked)

    @property
    def clipped(self) -> Clipped:
        """How many actions and rewards were beyond the bounds: for the curator's eyes only.

        These are counts of raw data, without noise, and no guarantee covers them. They begin at
        0 whenever the learner is made or loaded, and stay there with ``on_violation='error'``.
        """
        return self._curator.clipped

    def choose(
        self,
        actions: ArrayLike,
        *,
        subject: Subject | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> Decision:
        """Pick one action for the current person.

        Args:
            actions: the decision set, shape (K, d), an action a row.
            subject: who the person is, if they may come again: an id that is the same each time.
            among: the only actions that may be chosen: their places in ``actions``, or a mask.
            exclude: actions that may not be chosen, in the same way.

        Returns:
            Which action, by its place in ``actions``, and the id under which its reward is given
            to `learn`. Its probability is that among the actions on offer.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: the decision set cannot be used.
            EmptyDecisionSetError: nothing is left to choose.
            HorizonReachedError: all rounds have been played.
        """
        admitted = self._curator.admit(actions)
        admitted.setflags(write=False)
        places = offered(len(admitted), among, exclude)
        release = self._curator.shown
        if release is not self._diagnosed:
            self._warn_if_uninformed(release)
        index, probability = picked(self._policy, release, admitted, places)
        subjects = None if subject is None else (subject,)
        ids = self._curator.open_decisions([admitted[index]], subjects)
        return Decision(index, ids[0], probability)

    def choose_many(
        self,
        sets: Iterable[ArrayLike],
        *,
        subjects: Iterable[Subject | None] | None = None,
        among: Sequence[Some | None] | None = None,
        exclude: Sequence[Some | None] | None = None,
    ) -> list[Decision]:
        """Pick an action for each of several people, from the same release and in one commit.

        Args:
            sets: a decision set for each, as for `choose`.
            subjects: who each of them is, as for `choose`; None for those not known.
            among: an entry for each set, as for `choose`; None in it where there is no restriction.
            exclude: the same.

        Returns:
            A decision for each, in order. After an error none was made.
        """
        _require_each(subjects)
        admitted = self._curator.admit_all(_listed("sets", sets, "decision sets"))
        restricted = among is not None or exclude is not None
        places = offered_in_each([*map(len, admitted)], among, exclude) if restricted else None
        release = self._curator.shown
        if release is not self._diagnosed:
            self._warn_if_uninformed(release)
        chosen = picked_of_each(self._policy, release, admitted, places)
        pairs = zip(admitted, chosen, strict=True)
        actions = [actions[choice.index] for actions, choice in pairs]
        ids = self._curator.open_decisions(actions, subjects)
        return [
            Decision(index, one, probability)
            for (index, probability), one in zip(chosen, ids, strict=True)
        ]

    def _warn_if_uninformed(self, release: Release) -> None:
        """Warn, once, if little will be learned: releases come too late, or they do not help."""
        self._diagnosed = release
        if self._warned:
            return
        mechanism = self.mechanism
        if not (
            isinstance(self._policy, policies.PosteriorUCB)
            or mechanism.schedule.after(0) > mechanism.setting.horizon
        ):
            return
        found = diagnosis(release, brief=True)
        if found.never or found.too_short or found.in_vain:
            self._warned = True
            warnings.warn(str(found), UninformedWarning, stacklevel=3)

    def learn(
        self, decision: Decision | str, reward: float, *, subject: Subject | None = None
    ) -> None:
        """Take in the reward of a decision: now, later, in any order, or never.

        Args:
            decision: what `choose` returned, or its id.
            reward: a number within ``reward_bound`` of ``reward_centre``.
            subject: whom the decision was for, if `choose` was not told.

        Raises:
            UnknownDecisionError: this learner did not make the decision.
            DecisionClosedError: it has had its reward, was forgotten or given up.
            ShapeError, NotFiniteError, OutOfBoundsError: the reward cannot be used.
        """
        subjects = None if subject is None else (subject,)
        self._curator.learn([(_id(decision), reward)], subjects)

    def learn_many(
        self,
        pairs: Iterable[tuple[Decision | str, float]],
        *,
        subjects: Iterable[Subject | None] | None = None,
    ) -> None:
        """Take in several rewards in one commit: all of them, or none after an error.

        Args:
            pairs: decisions, or their ids, and their rewards.
            subjects: whom they were for, one for each pair, as for `learn`.
        """
        _require_each(subjects)
        found = [(_id(decision), reward) for decision, reward in _pairs(pairs)]
        self._curator.learn(found, subjects)

    def observe(
        self,
        actions: ArrayLike,
        rewards: ArrayLike,
        *,
        subjects: Iterable[Subject | None] | None = None,
    ) -> None:
        """Take in choices that were made elsewhere, such as a log: a warm start.

        Each counts as one round, is protected as any other and is in the releases that follow. All
        of them are taken in by one commit, or none after an error; give a long log in parts of
        some ten thousand rows.

        If rewards alone are protected, the actions are public as they are given here, so they must
        not depend on rewards but through releases. A log of a policy that learned from raw rewards
        breaks that: what it chose next tells what a reward was. Protect rows then, the default.

        Args:
            actions: what was chosen, shape (n, d).
            rewards: the reward of each, shape (n,).
            subjects: who each row is from, as for `choose`; None for those not known.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: a row cannot be used.
            HorizonReachedError: there are not as many rounds left.
        """
        _require_each(subjects)
        values = _vector(rewards)
        if not values:
            return
        chosen = self._curator.bounded(actions)
        if len(chosen) != len(values):
            raise ShapeError(
                "rewards", f"has {len(values)} entries for {len(chosen)} actions; give one for each"
            )
        self._curator.observe(chosen, values, subjects)
        self._curator.count_clipped(sets=[actions], rewards=values)

    def forget(self, decision: Decision | str) -> None:
        """Erase the action of a decision whose reward will not come.

        Args:
            decision: what `choose` gave, or its id.
        """
        self._curator.forget(_id(decision))

    def forget_subject(self, subject: Subject) -> Forgotten:
        """Erase all that is one person's and not in a release yet: as a whole, or not at all.

        Actions that wait for a reward are erased; a reward that comes later is not used. Rows of
        the open batch are withdrawn, and rows of zeros stand in their place: how many rows there
        are, and so the time of every release, is what it would have been. Rows that are in a
        release already cannot be taken back. What the person has used of
        ``contributions_per_user`` stays used, so the keyed hash of the id stays, with a count.

        Args:
            subject: the id under which the person came. One that never came has nothing to erase.

        Returns:
            How many decisions and rows were erased, and how many rows had been released.
        """
        return self._curator.forget_subject(subject)

    @property
    def ledger(self) -> Ledger:
        """Every release up to now, with its digest and the privacy card: all public."""
        return self._curator.ledger

    @property
    def path(self) -> Path | str | None:
        """Where the learner is stored: a file, or a database's URL. None if in memory only."""
        return self._curator.place

    def save(self, path: Place | None = None) -> None:
        """Store the learner from now on; later, bring what is stored up to date.

        Once stored, every change is on the disk before the call that made it returns, and every
        release is in the ledger before anybody sees it. So a crash loses nothing that was
        acknowledged, and `load` continues with the same noise. One learner at a time has a store
        open. Nothing that exists is overwritten.

        Args:
            path: a file, beside which ``path.ledger`` will be, both for their owner only; or
                ``postgresql://user@host/database#name``. Leave it out if the learner is stored.
        """
        self._curator.store_at(path, policies.to_json(self._policy))

    def close(self) -> None:
        """Bring the store up to date and give it up; `load` continues from there.

        A stored learner that was closed does nothing more. One that is in memory only has nothing
        to close.
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
    path: Place,
    *,
    policy: policies.Policy | None = None,
    perturbations: Perturbations | None = None,
    noise_source: NoiseSource | None = None,
    ledger_head: str | None = None,
    budget: Budget | None = None,
) -> LinUCB:
    """Open the learner that is stored at a path, and continue where its last call returned.

    It stays stored there, and held: a second `load`, here or in another process, is refused until
    `LinUCB.close`. A state that is older than its ledger is refused for good: something was shown
    that it does not know of, and continuing from it would break the guarantee.

    Args:
        path: where `LinUCB.save` stored the learner.
        policy: to use instead of the stored one; a policy of your own must be given again.
        perturbations: those of a learner with supplied perturbations; no store can hold them.
        noise_source: for tests only, as in `LinUCB`.
        ledger_head: the ``ledger.head`` of an earlier moment, if you kept it elsewhere. A learner
            that was restored together with its ledger from before that moment is refused then.
        budget: one that the learner shares. It is registered there if it is not yet: a learner
            counts once, however often it is loaded.

    Returns:
        The learner.

    Raises:
        MissingFileError: nothing is stored there.
        StateInUseError: somebody has it open.
        RewoundStateError: the state is older than what was released from it.
        StateFileError: what is stored is damaged, or of a newer version.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> with discreet.LinUCB(problem, horizon=1_000, privacy=privacy, path="one") as bandit:
        ...     waiting = bandit.choose([[1.0, 0.0], [0.0, 1.0]]).id
        >>> with discreet.load("one") as bandit:
        ...     bandit.learn(waiting, reward=0.5)
        ...     bandit.rows
        1
    """
    _require(policy, policies.Policy | None, "policy", A_POLICY)
    _require(budget, Budget | None, "budget", _A_BUDGET)
    _require_source(noise_source)
    curator, document = opening.open(
        path, source=noise_source, supplied=perturbations, known_head=ledger_head
    )
    try:
        rule = policies.settled(_rule(document, policy), curator.mechanism)
        curator.policy = policies.to_json(rule)
        learner = LinUCB.__new__(LinUCB)
        learner._attach(curator, rule)  # noqa: SLF001  # the other way to construct one
        if budget is not None:
            budget.spend(learner)
    except BaseException:
        curator.close()
        raise
    return learner


def read_ledger(path: Place) -> Ledger:
    """The ledger of a stored learner, without opening the learner: it may be in use.

    Args:
        path: where the learner is stored, or a ledger's own file.

    Returns:
        All releases that were shown, checked line by line.

    Raises:
        BrokenLedgerError: the ledger was altered, or is none.
        MissingFileError: there is none.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> discreet.LinUCB(problem, horizon=1_000, privacy=privacy, path="one").close()
        >>> discreet.read_ledger("one").card["epsilon"]
        1.0
    """
    return Ledger.parse(stores.ledger_of(path), torn="drop")


def _pairs(
    pairs: Iterable[tuple[Decision | str, float]],
) -> Sequence[tuple[Decision | str, float]]:
    found = _listed("pairs", pairs, "pairs of a decision and its reward")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in found):
        raise ParameterError("pairs", "must be pairs of a decision and its reward")
    return found


def _rule(body: dict[str, Any], policy: policies.Policy | None) -> policies.Policy:
    """The policy to go on with, if all that no store can hold was given again."""
    if body.get("policy", ...) is None and policy is None:
        raise ParameterError("policy", "must be given again: no store can hold your own")
    try:
        saved = policies.from_json(body["policy"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise CorruptFileError(
            "path", "holds settings that do not fit together; restore it from a backup"
        ) from None
    return policy or saved  # type: ignore[return-value]  # one of them is there


def _vector(rewards: ArrayLike) -> list[object]:
    """Rewards one by one; each is checked where it is taken in."""
    found = np.asarray(rewards)
    if found.ndim != 1:
        raise ShapeError("rewards", "must be a list of numbers, one for each action")
    values: list[object] = found.tolist()
    return values


def _require(value: object, kind: type | UnionType, parameter: str, advice: str) -> None:
    if isinstance(value, type) or not isinstance(value, kind):
        raise ParameterError(parameter, f"is of type {type(value).__name__}; give {advice}")


def _require_source(source: object) -> None:
    """Refuse what is no source of noise; one of your own may have just what its noise asks for."""
    if source is not None and (isinstance(source, type) or not hasattr(source, "secret")):
        raise ParameterError(
            "noise_source",
            f"is of type {type(source).__name__}; give SeededNoise(...), or leave it out: noise "
            "comes from the operating system then",
        )


def _require_each(subjects: object) -> None:
    """Refuse what is no list of ids; the curator checks how many there are, and each of them."""
    _require(subjects, Iterable | None, "subjects", "a list with an id, or None, for each")


def _listed(parameter: str, values: Iterable[_Item], what: str) -> list[_Item]:
    _require(values, Iterable, parameter, f"a list of {what}")
    return list(values)


def _id(decision: Decision | str) -> object:
    return decision.id if isinstance(decision, Decision) else decision
