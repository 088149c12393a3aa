"""What is compared: the learned policies, and the simple ones beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import ParameterError
from discreet.features import FeatureMap, default
from discreet.features import _sources as sources
from discreet.features import _values as read
from discreet.features._parts import Category
from discreet.mechanism import variants
from discreet.problem import Problem
from discreet.release import Release, policies
from discreet.replay._log import leaves

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

PRIVATE, PRIVATE_GREEDY = "private", "private greedy"
EXACT, EXACT_GREEDY = "nonprivate", "nonprivate greedy"
UNIFORM, FIXED, LOGGED = "uniform", "best fixed", "logged"
COMPARED = (PRIVATE, PRIVATE_GREEDY, EXACT, EXACT_GREEDY, UNIFORM, FIXED)
RELEASED = (PRIVATE, PRIVATE_GREEDY, UNIFORM, LOGGED)  # nothing learned without privacy

_MOST_NAMED = 16  # actions with a coordinate of their own in the default map


class Catalogue:
    """The actions that could have been taken, in every round the same.

    Args:
        actions: ids, or dictionaries with ``id`` and ``features``.
    """

    def __init__(self, actions: Sequence[Any]) -> None:
        """Check that each has an id of its own."""
        if isinstance(actions, str | bytes | Mapping) or not isinstance(actions, Sequence):
            raise ParameterError("actions", "must be a list of ids, or of actions with their ids")
        self.records: list[Mapping[str, object]] = [
            sources._action_of(one, "actions")  # noqa: SLF001  # what a map would make of it
            for one in actions
        ]
        texts = [read.text(one.get("id")) for one in self.records]
        self.ids = tuple(text for text in texts if text)
        if not self.ids or len(set(self.ids)) < len(texts):
            raise ParameterError("actions", "must be one or more, each with an id of its own")


def named_by(features: FeatureMap | None) -> tuple[str, ...]:
    """The ids of actions that a map names; none if it names none."""
    if features is None:
        return ()
    if features.actions is not None:
        return features.actions
    found: dict[str, None] = {}
    for part in leaves(features.parts):
        if isinstance(part, Category) and part.path == "action.id" and not part.other:
            found |= dict.fromkeys(part.values)
    return tuple(found)


class WithoutPrivacy:
    """What is learned without privacy: exact sums, and the mean reward of each action.

    Args:
        dim: number of features.
        actions: number of actions.
    """

    def __init__(self, dim: int, actions: int) -> None:
        """Start without a row."""
        self.rows = 0
        self._gram, self._moment = np.zeros((dim, dim)), np.zeros(dim)
        self._weights, self._totals = np.zeros(actions), np.zeros(actions)

    def add(self, features: F64, rewards: F64, actions: I64, propensities: F64) -> None:
        """Add rows: what was chosen, with centred rewards, and how probable it was."""
        self.rows += len(rewards)
        self._gram += features.T @ features
        self._moment += features.T @ rewards
        count = len(self._weights)
        self._weights += np.bincount(actions, 1.0 / propensities, minlength=count)
        self._totals += np.bincount(actions, rewards / propensities, minlength=count)

    def release(self, problem: Problem) -> Release:
        """What `LinUCB` with the variant nonprivate would show after these rows."""
        row = variants.named("nonprivate")
        mechanism = variants.calibrate(row, problem, horizon=self.rows, privacy=None)
        return Release(
            number=self.rows,
            rows=self.rows,
            gram=self._gram + mechanism.shift * np.eye(problem.dim),
            moment=self._moment,
            spread=0.0,
            weight=float(self.rows),
            mechanism=mechanism,
        )

    def best(self) -> int:
        """The action with the highest mean reward, weighted by one over the propensities."""
        means = np.full(len(self._weights), -np.inf)
        np.divide(self._totals, self._weights, out=means, where=self._weights > 0.0)
        return int(means.argmax())


class Compared:
    """Probabilities and predictions of the policies that are compared.

    Args:
        private: the learner's last release.
        policy: what the learner plays by.
        exact: the same without privacy.
        best: the place of the best fixed action.
        centre: what was subtracted from rewards.
        bounds: of rewards.
    """

    def __init__(
        self,
        private: Release,
        policy: policies.PosteriorUCB,
        exact: Release,
        *,
        best: int,
        centre: float,
        bounds: tuple[float, float],
    ) -> None:
        """Keep what the policies are made from."""
        usual = policies.usual(exact.mechanism)
        self._learned: tuple[tuple[str, str, Release, Any], ...] = (
            (PRIVATE, PRIVATE_GREEDY, private, policy),
            (EXACT, EXACT_GREEDY, exact, usual),
        )
        self._model = exact
        self._best, self._centre, self._bounds = best, centre, bounds

    def targets(self, sets: F64) -> dict[str, F64]:
        """How probable each action is by each policy: (n, K), or (1, K) if always the same."""
        count = sets.shape[1]
        found = {}
        for name, greedy, release, policy in self._learned:
            found[name] = policy.probabilities(release, sets)
            found[greedy] = best_by_mean(release, sets)
        found[UNIFORM] = np.full((1, count), 1.0 / count)
        found[FIXED] = np.eye(count)[[self._best]]
        return found

    def predictions(self, sets: F64) -> F64:
        """The mean reward of each action by the fit without privacy, shape (n, K)."""
        return np.clip(sets @ self._model.posterior.centre + self._centre, *self._bounds)


def best_by_mean(release: Release, sets: F64) -> F64:
    """One for the action with the highest posterior mean, the first of several, shape (n, K).

    All actions are equally probable if the release cannot tell them apart.
    """
    if not release.posterior.distinguishes:
        return np.full((1, sets.shape[1]), 1.0 / sets.shape[1])
    best = (sets @ release.posterior.centre).argmax(axis=1)
    found: F64 = np.eye(sets.shape[1])[best]
    return found


def default_map(ids: Sequence[str]) -> FeatureMap:
    """The map for those who specify none."""
    return default(actions=list(ids)) if len(ids) <= _MOST_NAMED else default()
