"""The work: a warm start from one part of a log, and values from the other.

Formal guarantee: a row's features, and which part it is in, depend on that row and on public
settings alone. So all that the learner shows has the learner's guarantee, and `PrivateValues` see
policies that are made from the learner's releases, or from no data. Where nobody has rows in both
parts, the two guarantees do not add up.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from discreet import _checks as checks
from discreet.errors import ParameterError, StateExistsError
from discreet.evaluation import Comparison, ExactValue, PrivateValues, Values
from discreet.features import FeatureMap
from discreet.learner import LinUCB
from discreet.mechanism.noise.sources import NoiseSource
from discreet.privacy import Privacy
from discreet.replay import _policies as compared
from discreet.replay._log import F64, Log, Reader, Rounds, Terms
from discreet.replay._parts import EVALUATE, LEARN, Parts, parts_of
from discreet.replay._result import Replay

_NUMBERS_AT_ONCE = 2**22  # of decision sets: 32 MiB
_THETA_NORM = 4.0  # times the bound of centred rewards
_SURE = 5.0  # deviations, for actions that are not uniform
_FROM_THE_LOG = (
    "The list of actions was taken from the log, and an action that only one person had is on it "
    "all the same; name the actions, so that the list is public."
)
_UNIFORM = (
    "No propensities were given: every action is taken to have been equally probable in every "
    "round. If that is not so, values mean nothing."
)
_SEVERAL_ROWS = (
    "It is not known whose rows are whose: intervals take all rows to be independent, and where "
    "values are released with privacy, both guarantees add up for a person with rows in both parts."
)


def replay(
    log: Log,
    *,
    privacy: Privacy,
    features: FeatureMap | None = None,
    actions: Sequence[Any] | None = None,
    low: float = 0.0,
    high: float = 1.0,
    theta_norm: float | None = None,
    clip: float | None = None,
    value_privacy: Privacy | None = None,
    train: float = 0.7,
    seed: int = 0,
    on_violation: str = "error",
    chunk: int = 50_000,
    level: float = 0.95,
    save: str | Path | None = None,
    noise_source: NoiseSource | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> Replay:
    """Start a private learner from a log, and estimate what its policy is worth.

    The first part of the log is for learning, the rest for evaluation. With subjects, people are
    assigned to the parts, by a public hash: nobody is in both.

    Args:
        log: where the log is, and what its columns mean.
        privacy: the target of the learner. If it protects rewards alone, whoever chose the logged
            actions must not have seen raw rewards: what was chosen next would tell them.
        features: the public map that makes rows of contexts and actions; if left out
            `features.default`.
        actions: the ids of all actions that could have been taken, in every round, or dictionaries
            with ``id`` and ``features``; if left out those that the map names, or else those that
            occur in the log.
        low: no reward is below this.
        high: no reward is above this.
        theta_norm: bound on the norm of the parameter, for rewards within +-(high - low) / 2; if
            left out 2 (high - low).
        clip: no weight counts more than this, as for `Values`.
        value_privacy: the target of the values that are released; None to release none.
        train: the share of rows, or of people, to learn from.
        seed: the public key by which people are assigned to parts; it has nothing to do with noise.
        on_violation: what to do with rewards outside the bounds, and with a person's rows beyond
            ``contributions_per_user``: 'error', or 'clip' to move them, and to leave them out.
        chunk: how many rows are read at a time.
        level: of the intervals.
        save: where to store the learner in the end, as `LinUCB.save` does.
        noise_source: for tests only; it voids the guarantees.
        on_progress: called now and then with the share of the work that is done.

    Returns:
        The learner, and values of its policy and of others.

    Raises:
        ParameterError: Settings do not fit each other, or the log.
        DiscreetError: A row cannot be used. The message says which one, not what it holds.
    """
    started = time.perf_counter()
    if not isinstance(log, Log):
        raise ParameterError("log", "must be Log(path=..., action=..., reward=...)")
    low, high = checks.finite("low", low), checks.finite("high", high)
    train = checks.probability("train", train)
    chunk = checks.count("chunk", chunk)
    clips = checks.one_of("on_violation", on_violation, ("error", "clip")) == "clip"
    _require_privacy("privacy", privacy)
    # These check the rest, before a long log is read.
    exact = Values(compared.COMPARED, low=low, high=high, clip=clip)
    logged = Values([compared.LOGGED], low=low, high=high)
    private = _private_values(value_privacy, low, high, clip, noise_source)
    if log.subject is not None and value_privacy is not None:
        _require_as_many(privacy, value_privacy)
    checks.probability("level", level)
    half = (high - low) / 2
    theta_norm = _THETA_NORM * half if theta_norm is None else theta_norm
    _require_free(save)

    reader = Reader(log)
    listed = actions if actions is not None else compared.named_by(features) or None
    catalogue = None if listed is None else compared.Catalogue(listed)
    parts = parts_of(
        reader,
        train=train,
        seed=checks.count("seed", seed, least=0),
        most=privacy.contributions_per_user,
        clip=clips,
        ids=catalogue is None,
        chunk=chunk,
    )
    catalogue = compared.Catalogue(sorted(parts.ids)) if catalogue is None else catalogue
    features = compared.default_map(catalogue.ids) if features is None else features
    contexts, missing = reader.contexts(features)
    bandit = LinUCB(
        features.problem(reward_bound=half, theta_norm=theta_norm),
        horizon=None,
        privacy=privacy,
        noise_source=noise_source,
    )
    work = _Work(
        reader=reader,
        parts=parts,
        terms=Terms(
            actions=catalogue.ids, contexts=contexts, low=low, high=high, clip=clips, chunk=chunk
        ),
        features=features,
        catalogue=catalogue,
        centre=low + half,
        half=half,
        on_progress=on_progress,
    )
    without = work.learn(bandit)
    best = without.best()
    rules = compared.Compared(
        bandit.release,
        bandit.policy,  # type: ignore[arg-type]  # that of the default variant
        without.release(bandit.problem),
        best=best,
        centre=work.centre,
        bounds=(low, high),
    )
    counts = work.evaluate(rules, exact, logged, private, privacy.contributions_per_user)
    if save is not None:
        bandit.save(save)
    return Replay(
        learner=bandit,
        features=features,
        centre=work.centre,
        actions=catalogue.ids,
        rows=parts.rows,
        learned=parts.size(LEARN),
        evaluated=parts.size(EVALUATE),
        exact=Comparison(
            values=(*exact.result(level=level).values, *logged.result(level=level).values)
        ),
        differences=_differences(exact, level),
        best_fixed=catalogue.ids[best],
        released=None if private is None else private.release(level=level),
        warnings=_warnings(log, counts),
        notes=_notes(log, privacy, features, missing, listed=listed is not None),
        seconds=time.perf_counter() - started,
    )


class _Work:
    """The two passes over a log."""

    def __init__(
        self,
        *,
        reader: Reader,
        parts: Parts,
        terms: Terms,
        features: FeatureMap,
        catalogue: compared.Catalogue,
        centre: float,
        half: float,
        on_progress: Callable[[float], None] | None,
    ) -> None:
        self._reader, self._parts, self._terms = reader, parts, terms
        self._features, self._catalogue = features, catalogue
        self.centre, self._half = centre, half
        self._on_progress = on_progress
        self._done = 0

    def learn(self, bandit: LinUCB) -> compared.WithoutPrivacy:
        """Give one part to a learner; what the same rows come to without privacy."""
        without = compared.WithoutPrivacy(self._features.dim, len(self._catalogue.ids))
        ids = np.array(self._catalogue.ids, dtype=object)
        for rounds in self._rounds(LEARN):
            rows = self._features.columns(
                rounds.contexts, list(ids[rounds.actions]), actions=self._catalogue.records
            )
            rewards = np.clip(rounds.rewards - self.centre, -self._half, self._half)
            bandit.observe(rows, rewards, subjects=rounds.subjects)
            without.add(rows, rewards, rounds.actions, rounds.propensities)
            self._report(len(rewards))
        return without

    def evaluate(
        self,
        rules: compared.Compared,
        exact: Values,
        logged: Values,
        private: PrivateValues | None,
        contributions: int,
    ) -> F64:
        """Give the other part to the estimators; how often each action occurs there."""
        by_person = self._parts.people if contributions > 1 else None
        count = len(self._catalogue.ids)
        most = max(1, _NUMBERS_AT_ONCE // (count * self._features.dim))
        found = np.zeros(count)
        for chunk in self._rounds(EVALUATE):
            for rounds in chunk.pieces(most):
                subjects = None if by_person is None else by_person[rounds.rows]
                sets = self._sets(rounds)
                targets, chances = rules.targets(sets), rounds.propensities
                exact.add(
                    rounds.rewards,
                    propensities=chances,
                    targets=targets,
                    actions=rounds.actions,
                    predictions=rules.predictions(sets),
                    subjects=subjects,
                )
                logged.add(rounds.rewards, propensities=chances, targets=chances, subjects=subjects)
                if private is not None:
                    few = {name: targets.get(name, chances) for name in compared.RELEASED}
                    private.add(
                        rounds.rewards, propensities=chances, targets=few, actions=rounds.actions
                    )
                found += np.bincount(rounds.actions, minlength=count)
                self._report(rounds.rows.size)
        return found

    def _sets(self, rounds: Rounds) -> F64:
        """The decision sets: all actions, in every round."""
        contexts = rounds.contexts or {"": np.zeros(rounds.rows.size)}  # says how many there are
        return self._features.candidates(contexts, self._catalogue.records)

    def _rounds(self, part: int) -> Iterator[Rounds]:
        rows = partial(self._parts.mask, part)
        last = self._parts.last(part)
        return self._reader.rounds(self._terms, rows, last, subjects=part == LEARN)

    def _report(self, rows: int) -> None:
        self._done += rows
        if self._on_progress is not None:
            self._on_progress(self._done / self._parts.rows)


def _require_privacy(parameter: str, given: object) -> None:
    if not isinstance(given, Privacy):
        raise ParameterError(parameter, "must be Privacy(epsilon=..., delta=...)")


def _require_as_many(privacy: Privacy, value_privacy: Privacy) -> None:
    """A person has as many rows as the learner's target says, whichever part they are in."""
    if value_privacy.contributions_per_user < privacy.contributions_per_user:
        raise ParameterError(
            "value_privacy",
            f"counts contributions_per_user={value_privacy.contributions_per_user}, and people "
            f"have up to {privacy.contributions_per_user} rows here; give both the same",
        )


def _private_values(
    privacy: Privacy | None,
    low: float,
    high: float,
    clip: float | None,
    noise_source: NoiseSource | None,
) -> PrivateValues | None:
    if privacy is None:
        return None
    _require_privacy("value_privacy", privacy)
    if clip is None:
        raise ParameterError("clip", "is missing; values that are released need one, such as 10")
    return PrivateValues(
        compared.RELEASED,
        low=low,
        high=high,
        clip=clip,
        privacy=privacy,
        noise_source=noise_source,
    )


def _require_free(place: str | Path | None) -> None:
    """Refuse a file that exists now, and not after hours."""
    if place is not None and not str(place).startswith("postgresql:") and Path(place).exists():
        raise StateExistsError("save", "is a file that exists; give a new path")


def _differences(exact: Values, level: float) -> tuple[ExactValue, ...]:
    others = (compared.UNIFORM, compared.EXACT, compared.FIXED)
    return tuple(
        exact.difference(compared.PRIVATE, other, estimator=estimator, level=level)
        for other in others
        for estimator in ("snips", "dr")
    )


def _warnings(log: Log, counts: F64) -> tuple[str, ...]:
    """What the log says against what was assumed about it."""
    if log.propensity is not None:
        return ()
    share, rows = 1.0 / len(counts), counts.sum()
    spread = math.sqrt(max(share * (1.0 - share) * rows, 1e-300))
    if np.abs(counts - share * rows).max() <= _SURE * spread:
        return ()
    return ("the log's actions are not equally frequent, so their propensities are not equal",)


def _notes(
    log: Log, privacy: Privacy, features: FeatureMap, missing: Sequence[str], *, listed: bool
) -> tuple[str, ...]:
    found = [] if listed else [_FROM_THE_LOG]
    if log.propensity is None:
        found.append(_UNIFORM)
    if log.subject is None and privacy.contributions_per_user > 1:
        found.append(_SEVERAL_ROWS)
    if missing:
        found.append(f"The log has no column for {', '.join(missing)}: zeros there.")
    return (*found, *features.notes)
