"""`Ranker`: decides from a published release alone. No curator, no raw data, no memory.

Any number of rankers may serve people from the same release, wherever it was shipped to. What they
do is post-processing: earlier people's privacy does not depend on them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import (
    NotFiniteError,
    OutOfBoundsError,
    ParameterError,
    RewoundStateError,
    ShapeError,
)
from discreet.features import FeatureMap
from discreet.features._sources import Actions
from discreet.kernels import _linalg as linalg
from discreet.mechanism import Mechanism
from discreet.privacy import Guarantee
from discreet.problem import Problem
from discreet.release import policies
from discreet.release._diagnosis import Diagnosis, diagnosed
from discreet.release._offered import A_POLICY, Some, offered, picked
from discreet.release._release import Release, fingerprint
from discreet.release.confidence import Region
from discreet.release.policies import Choice
from discreet.release.posterior import Estimate, Posterior

__all__ = ["Ranker"]

_F64 = NDArray[np.float64]
Offer: TypeAlias = ArrayLike | Actions
"""A decision set: rows, shape (K, d), or what a feature map takes."""

_TOLERANCE = 1e-9  # by as much a caller's own arithmetic may make a row too long


class Deciding(ABC):
    """What can be asked of a release and a policy."""

    _features: FeatureMap | None = None

    @property
    @abstractmethod
    def release(self) -> Release:
        """What decisions are made from."""

    @property
    @abstractmethod
    def policy(self) -> policies.Policy:
        """How a release becomes a choice."""

    @property
    def problem(self) -> Problem:
        """The stated bounds."""
        return self.mechanism.setting.problem

    @property
    def mechanism(self) -> Mechanism:
        """The noise, its bounds and its setting."""
        return self.release.mechanism

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about everything the learner shows; prints as a sentence."""
        return self.mechanism.guarantee

    @property
    def confidence(self) -> Region:
        """The confidence set that the release is proven to support."""
        return self.release.confidence

    @property
    def posterior(self) -> Posterior:
        """What the release says about the parameter: a model, and no theorem."""
        return self.release.posterior

    @property
    def diagnosis(self) -> Diagnosis:
        """How much the release says, in words and numbers."""
        return diagnosed(self.release, self._features)

    @abstractmethod
    def _rows(self, actions: Offer, context: Mapping[str, Any] | None) -> _F64:
        """The decision set as rows, shape (K, d), that nobody can write to."""

    def choose(
        self,
        actions: Offer,
        *,
        context: Mapping[str, Any] | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> Choice:
        """Pick an action as the learner would. There is no decision, so nothing can be learned.

        Args:
            actions: the decision set, shape (K, d), an action a row; with a feature map, actions
                as it takes them.
            context: what the feature map knows of the person.
            among: the only actions that may be chosen: their places in ``actions``, or a mask.
            exclude: actions that may not be chosen, in the same way.

        Returns:
            The place of an action in ``actions``, and how probable it was.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: the decision set cannot be used.
            EmptyDecisionSetError: nothing is left to choose.
        """
        sets = self._rows(actions, context)
        return picked(self.policy, self.release, sets, offered(len(sets), among, exclude))

    def probabilities(
        self,
        actions: Offer,
        *,
        context: Mapping[str, Any] | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> _F64:
        """How probable each action is, exactly.

        Args:
            actions: as for `choose`, and so are the others.
            context: what the feature map knows of the person.
            among: the only actions that may be chosen.
            exclude: actions that may not be chosen.

        Returns:
            Shape (K,); 0 for actions that are not on offer.

        Raises:
            ParameterError: the policy does not say.
        """
        return self._probabilities(self._rows(actions, context), among, exclude)

    def rank(
        self,
        actions: Offer,
        *,
        context: Mapping[str, Any] | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> list[Choice]:
        """All actions on offer, the most probable first; of equals the one with the higher mean.

        Args:
            actions: as for `choose`, and so are the others.
            context: what the feature map knows of the person.
            among: the only actions that may be chosen.
            exclude: actions that may not be chosen.

        Returns:
            Their places in ``actions``, with their probabilities.
        """
        sets = self._rows(actions, context)
        places = offered(len(sets), among, exclude)
        found = self._probabilities(sets, among, exclude).tolist()
        means = (sets @ _centre(self.release)).tolist()
        order = sorted(
            range(len(sets)) if places is None else places.tolist(),
            key=lambda place: (-found[place], -means[place], place),
        )
        return [Choice(place, found[place]) for place in order]

    def estimate(
        self,
        actions: Offer,
        *,
        context: Mapping[str, Any] | None = None,
        level: float = 0.95,
    ) -> Estimate:
        """What is thought of actions' mean rewards, as by `LinUCB.estimate`.

        Args:
            actions: as for `choose`.
            context: what the feature map knows of the person.
            level: the probability that the posterior gives an interval.

        Returns:
            ``estimate``, ``low`` and ``high``, an entry for each action.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: no decision set could be like this.
        """
        return self.release.cautious.estimate(self._rows(actions, context), level=level)

    def _probabilities(self, sets: _F64, among: Some | None, exclude: Some | None) -> _F64:
        rule = getattr(self.policy, "probabilities", None)
        if rule is None:
            raise ParameterError(
                "policy",
                "does not say how probable its choices are; pass, for example, PosteriorUCB()",
            )
        places = offered(len(sets), among, exclude)
        found = np.zeros(len(sets))
        chosen = np.arange(len(sets)) if places is None else places
        found[chosen] = rule(self.release, sets[chosen])
        return found


class Ranker(Deciding):
    """Decides from a release, such as one that was shipped as JSON.

    Calls from several threads are safe.

    Args:
        release: what it decides from at first; see `update`.
        features: the feature map of the learner, if people and actions come as dictionaries or
            frames. Its digest must be the one that the release names.
        policy: how a release becomes a choice; the mechanism's own if left out.

    Examples:
        >>> import json
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy)
        >>> shipped = json.dumps(bandit.release.to_json())  # public
        >>> ranker = discreet.Ranker(discreet.Release.from_json(json.loads(shipped)))
        >>> ranker.choose([[1.0, 0.0], [0.0, 1.0]]).probability
        0.5
    """

    def __init__(
        self,
        release: Release,
        *,
        features: FeatureMap | None = None,
        policy: policies.Policy | None = None,
    ) -> None:
        """Check that release, feature map and policy fit together."""
        if not isinstance(release, Release):
            raise ParameterError(
                "release", "is not a Release; pass, for example, Release.from_json(document)"
            )
        require_policy(policy)
        self._features = fitting(features, release.mechanism.setting.problem)
        self._policy = policies.settled(policy, release.mechanism)
        self._release = release

    @property
    def release(self) -> Release:
        """What decisions are made from now."""
        return self._release

    @property
    def policy(self) -> policies.Policy:
        """How a release becomes a choice."""
        return self._policy

    @property
    def features(self) -> FeatureMap | None:
        """What makes rows of people and actions; None if rows are given."""
        return self._features

    def update(self, release: Release) -> bool:
        """Decide from a later release from now on.

        Args:
            release: of the same learner. That is for you to see to, with its ledger: here only the
                mechanism is compared, which another learner may have as well.

        Returns:
            Whether it is later than the one before; False if it is the same.

        Raises:
            ParameterError: it is no release, or one with another mechanism.
            RewoundStateError: it is older, or another one with the same number: somebody restored
                an old state of the learner. The ranker stays as it was.
        """
        before = self._release
        if not isinstance(release, Release) or release.mechanism != before.mechanism:
            raise ParameterError(
                "release", "is not of the same learner; make a new Ranker for another one"
            )
        if release.number == before.number and fingerprint(release) == fingerprint(before):
            return False
        if release.number <= before.number:
            other = "a different release" if release.number == before.number else "release"
            used = f"{other} number {before.number}"
            raise RewoundStateError(
                "release",
                f"is number {release.number}, but this ranker has already used {used}; the learner "
                "was restored from an older state. Restore the newest one",
            )
        self._release = release
        return True

    def _rows(self, actions: Offer, context: Mapping[str, Any] | None) -> _F64:
        found = rows_of(actions, context, self._features)
        dim = self._release.moment.size
        try:
            sets = np.array(found, dtype=np.float64)
        except (TypeError, ValueError):
            sets = np.empty(0)
        if sets.ndim != 2 or sets.shape[1] != dim or not len(sets):
            raise ShapeError("actions", f"must be numbers of the shape (K, {dim}), an action a row")
        limit = self._release.mechanism.setting.problem.action_norm
        if not linalg.largest_square(sets) <= (limit * (1.0 + _TOLERANCE)) ** 2:  # true for NaN
            if not np.isfinite(sets).all():
                raise NotFiniteError("actions", "holds NaN or infinity; give finite features")
            raise OutOfBoundsError(
                "actions",
                f"a row is longer than action_norm={limit:g}; scale your features, or state a "
                "larger action_norm for the learner",
            )
        sets.setflags(write=False)
        return sets

    def __repr__(self) -> str:
        release = self._release
        return f"Ranker(release={release.number}, rows={release.rows}, dim={release.moment.size})"


def require_policy(policy: object) -> None:
    """Refuse what is neither a policy nor None."""
    if policy is not None and not isinstance(policy, policies.Policy):
        raise ParameterError("policy", f"has no choose() method; pass {A_POLICY}")


def fitting(features: FeatureMap | None, problem: Problem) -> FeatureMap | None:
    """The feature map, if it is the one that a problem names."""
    if features is None:
        return None
    if not isinstance(features, FeatureMap):
        raise ParameterError(
            "features", "is no feature map; pass, for example, FeatureMap.from_json(...)"
        )
    if problem.features is not None and features.digest != problem.features:
        raise ParameterError(
            "features",
            "does not match the learner's feature map; compare its digest with the one on the "
            "privacy card",
        )
    if features.dim != problem.dim:
        raise ParameterError(
            "features", f"makes {features.dim} features, and the learner has {problem.dim}"
        )
    return features


def rows_of(
    actions: Offer,
    context: Mapping[str, Any] | None,
    features: FeatureMap | None,
) -> Any:  # noqa: ANN401  # rows, or what is none and is refused later
    """A decision set as a feature map makes it; as it was given, if there is none."""
    if features is not None:
        return features(context, actions)
    if context is not None:
        raise ParameterError("context", "is for a feature map; pass features=..., or leave it out")
    return actions


def _centre(release: Release) -> _F64:
    """The parameter that the release points at, by whatever it supports."""
    try:
        return release.posterior.centre
    except ParameterError:  # the law of the noise is another
        return release.confidence.centre
