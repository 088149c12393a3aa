"""Learners that choose their own rows from their own releases, and how often noise bands hold.

    python tests/service/dashboard/adaptive.py --runs 500

prints the coverage for several bandits, with seeds 15, 16 and so on. Rows come as in the service:
a decision is made from the last release by the bandit's own policy; every fifteenth event is never
activated; one subject in three comes again and again, and is beyond its cap soon. The truth of a
band is what the same rows say without noise, with the same public weights.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import LinUCB, Privacy, Problem, features
from discreet.mechanism import Mechanism
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import calibrate
from discreet.release import Release, policies
from discreet.service.dashboard import _learning as learning

PHONE, DESK = {"device": "phone"}, {"device": "desk"}
HORIZON = 10_000
CAP = 2


@dataclass(frozen=True)
class Case:
    """A bandit and the world it plays in.

    Attributes:
        actions: how many there are. The first is the best for phones, the last for desks.
        epsilon: of the promise.
        rows: how many are played.
        gap: how much better the best action is than the others.
        memory: how many rows are remembered, or None.
        disjoint: whether every action has a model of its own.
        width: of hashed coordinates beside those of the actions.
    """

    actions: int
    epsilon: float
    rows: int
    gap: float = 0.5
    memory: int | None = None
    disjoint: bool = False
    width: int = 0

    @cached_property
    def ids(self) -> list[str]:
        return [f"action {number}" for number in range(self.actions)]

    @cached_property
    def map(self) -> features.FeatureMap:
        device = features.category("context.device", ["phone", "desk"])
        if self.disjoint:
            return features.disjoint([features.intercept(), device], actions=self.ids)
        hashed = [features.hashed("action", self.width)] if self.width else []
        own = features.action_id(self.ids)
        return features.FeatureMap([features.intercept(), own, device, *hashed])

    @cached_property
    def mechanism(self) -> Mechanism:
        return self.calibrated("exact")

    def calibrated(self, noise: str) -> Mechanism:
        made = self.map
        problem = Problem.between(
            0,
            1,
            dim=made.dim,
            action_norm=1,
            theta_norm=1,
            blocks=made.blocks,
            features=made.digest,
        )
        privacy = Privacy(epsilon=self.epsilon, delta=1e-6, contributions_per_user=CAP)
        return calibrate(
            "windows",
            problem,
            horizon=HORIZON,
            privacy=privacy,
            noise=noise,
            memory=self.memory,
        )

    @cached_property
    def sets(self) -> NDArray[np.float64]:
        """The rows of all actions for both kinds of people, shape (2, K, d)."""
        offered = [{"id": one} for one in self.ids]
        return np.stack([self.map(PHONE, offered), self.map(DESK, offered)])

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean rewards, shape (2, K)."""
        found = np.full((2, self.actions), 0.5 - self.gap / 2)
        found[0, 0] = found[1, -1] = 0.5 + self.gap / 2
        return found

    @cached_property
    def ends(self) -> list[int]:
        """How many rows each release holds."""
        found = [self.mechanism.schedule.after(0)]
        while (after := self.mechanism.schedule.after(found[-1])) <= self.rows:
            found.append(after)
        return found

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The public weight of each batch (a column) in each release (a row)."""
        return np.asarray(self.mechanism.strategy.batch_weights(len(self.ends)))

    @cached_property
    def layout(self) -> learning.Layout:
        return learning.layout(self.map)


@dataclass
class Run:
    """All that happened: releases, and the rows, rewards and actions that only the curator has."""

    case: Case
    releases: list[Release]
    rows: NDArray[np.float64]
    rewards: NDArray[np.float64]
    chosen: NDArray[np.int64]

    def truth(self, place: int) -> dict[str, float]:
        """What the rows of a release say, without noise; nothing for an action without rows."""
        ends = self.case.ends[: place + 1]
        sizes = np.diff([0, *ends])
        weight = np.repeat(self.case.weights[place, : place + 1], sizes)
        weight = weight * self.rows[: ends[-1]].any(axis=1)
        rewards, chosen = self.rewards[: ends[-1]], self.chosen[: ends[-1]]
        found = {"mean": float(weight @ rewards / weight.sum())}
        for number, name in enumerate(self.case.ids):
            own = weight * (chosen == number)
            found[f"share of {name}"] = float(own.sum() / weight.sum())
            if own.any():
                found[f"mean of {name}"] = float(own @ rewards / own.sum())
        return found

    def bands(self, place: int, level: float = 0.95) -> dict[str, learning.Band]:
        """What the dashboard makes of a release."""
        point = learning.read(self.releases[place], self.case.layout, level=level)
        found = {"mean": point.mean}
        for one in point.actions:
            found[f"share of {one.name}"] = one.share
            found[f"mean of {one.name}"] = one.mean
        return {name: band for name, band in found.items() if band is not None}


class NoNoise:
    """A source of zeros."""

    secret = False

    def normals(self, count: int) -> NDArray[np.float64]:
        return np.zeros(count)


def play(case: Case, seed: np.random.SeedSequence, *, noisy: bool = True) -> Run:
    """A learner with seeded noise, or without any, and people who come to it."""
    noise, people = seed.spawn(2)
    rng = np.random.default_rng(people)
    mechanism = case.mechanism if noisy else case.calibrated("float")
    source = SeededNoise(noise) if noisy else NoNoise()
    learner = LinUCB.from_mechanism(mechanism, noise_source=source)
    rows, rewards, chosen, releases = [], [], [], []
    seen: Counter[int] = Counter()
    start = 0
    for end in case.ends:
        size = end - start
        chances = _chances(learner, case)
        kinds = rng.integers(0, 2, size)
        edges = chances.cumsum(axis=1)[kinds]
        picks = (rng.random(size)[:, None] > edges[:, :-1]).sum(axis=1)
        gained = (rng.random(size) < case.means[kinds, picks]).astype(float)
        batch = case.sets[kinds, picks].copy()
        subjects = [
            int(rng.integers(10)) if rng.random() < 1 / 3 else 1_000 + start + number
            for number in range(size)
        ]
        batch[(np.arange(start, end) % 15) == 0] = 0.0  # never activated
        learner.observe(batch, gained, subjects=[str(one) for one in subjects])
        for number, one in enumerate(subjects):
            seen[one] += 1
            if seen[one] > CAP:
                batch[number] = 0.0
        assert learner.release.rows == end
        releases.append(learner.release)
        rows.append(batch)
        rewards.append(gained)
        chosen.append(picks)
        start = end
    return Run(case, releases, *(np.concatenate(part) for part in (rows, rewards, chosen)))


def _chances(learner: LinUCB, case: Case) -> NDArray[np.float64]:
    """How probable each action is for both kinds of people, shape (2, K)."""
    return np.asarray(policies.usual(case.mechanism).probabilities(learner.release, case.sets))


@dataclass
class Tally:
    """How often bands held the truth, and how often they said anything at all."""

    held: int = 0
    told: int = 0  # with an estimate
    told_held: int = 0
    trials: int = 0

    def add(self, band: learning.Band, truth: float) -> None:
        slack = 1e-9  # an exact 0 or 1, after rounding
        inside = band.low - slack <= truth <= band.high + slack
        self.trials += 1
        self.held += inside
        self.told += band.estimate is not None
        self.told_held += inside and band.estimate is not None


def tallies(
    case: Case, *, runs: int, seed: int, places: tuple[int, ...] = (-1,), level: float = 0.95
) -> dict[tuple[int, str], Tally]:
    """Coverage of every band at some of the releases.

    Args:
        case: what is played.
        runs: how many learners.
        seed: of everything.
        places: which releases, from 0; -1 is the last.
        level: of the bands.
    """
    found: dict[tuple[int, str], Tally] = {}
    for sequence in np.random.SeedSequence(seed).spawn(runs):
        run = play(case, sequence)
        for place in (range(len(case.ends))[one] for one in places):
            truth = run.truth(place)
            for name, band in run.bands(place, level).items():
                if name in truth:
                    found.setdefault((place, name), Tally()).add(band, truth[name])
    return found


CASES = {
    "3 actions": Case(3, 4.0, 600),
    "3 actions, much noise": Case(3, 1.0, 2_000),
    "3 actions, little noise": Case(3, 32.0, 400),
    "3 actions, no difference": Case(3, 4.0, 600, gap=0.0),
    "3 actions, a model each": Case(3, 8.0, 600, disjoint=True),
    "3 actions, memory": Case(3, 8.0, 600, memory=200),
    "8 actions": Case(8, 8.0, 800),
    "3 actions, 32 coordinates": Case(3, 8.0, 800, width=26),
}


def main() -> None:
    """Print a table: for each case the kinds of bands, with the least and most frequent cover."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300, help="learners for each case")
    parser.add_argument("--seed", type=int, default=15, help="of the first case")
    given = parser.parse_args()
    head = "case | d | epsilon | rows | release | band | told | covered | covered if told | worst"
    say = sys.stdout.write
    say(f"| {head} |\n|{'---|' * (head.count('|') + 1)}\n")
    for seed, (name, case) in enumerate(CASES.items(), given.seed):
        places = (len(case.ends) // 3, len(case.ends) - 1)
        found = tallies(case, runs=given.runs, seed=seed, places=places)
        for place in places:
            for kind in ("mean", "share of", "mean of"):
                some = [
                    one
                    for (at, band), one in found.items()
                    if at == place and (band == kind if kind == "mean" else band.startswith(kind))
                ]
                say(
                    f"| {name} | {case.map.dim} | {case.epsilon:g} | {case.ends[place]:,} "
                    f"| {place + 1} | {kind} "
                    f"| {sum(one.told for one in some) / sum(one.trials for one in some):.0%} "
                    f"| {sum(one.held for one in some) / sum(one.trials for one in some):.1%} "
                    f"| {sum(one.told_held for one in some) / sum(one.told for one in some):.1%} "
                    f"| {min(one.held / one.trials for one in some):.1%} |\n"
                )


if __name__ == "__main__":
    main()
