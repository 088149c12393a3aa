"""LinUCB as one writes it in NumPy: the baseline. It shares no code with the package."""

import math
import time

import numpy as np
from numpy.typing import NDArray

from benchmarks.speed.timing import Run

F64 = NDArray[np.float64]

TOP = 0.75  # the mean reward of the best action


class PlainLinUCB:
    """LinUCB with regularizer 1 for unit actions, a unit parameter and rewards within [-1, 1].

    Paper: alg:linucb with the radius of prop:calc-beta and no perturbations. The inverse and the
    log-determinant are kept up to date by rank-one formulas, which in NumPy is twice as fast as
    to solve and to factor anew: a slow baseline would flatter what stands beside it.
    """

    def __init__(self, dim: int, horizon: int) -> None:
        """Start from the regularizer alone."""
        self.inverse = np.eye(dim)
        self.moment = np.zeros(dim)
        self.log_det = 0.0
        self.tail = 2 * math.log(2 * horizon)

    def choose(self, actions: F64) -> int:
        """The first row with the largest upper confidence bound."""
        solved = actions @ self.inverse
        radius = math.sqrt(self.tail + self.log_det) + 1.0
        widths = np.sqrt(np.einsum("kd,kd->k", solved, actions))
        return int((solved @ self.moment + radius * widths).argmax())

    def learn(self, action: F64, reward: float) -> None:
        """Add one row. Sherman-Morrison, and the determinant lemma."""
        solved = self.inverse @ action
        growth = 1.0 + float(action @ solved)
        self.inverse -= np.outer(solved, solved) / growth
        self.log_det += math.log(growth)
        self.moment += reward * action


def unit_rows(rng: np.random.Generator, count: int, dim: int) -> F64:
    """Uniform unit vectors, shape (count, dim)."""
    rows = rng.standard_normal((count, dim))
    rows /= np.sqrt(np.einsum("kd,kd->k", rows, rows))[:, None]
    return rows


def sphere_set(rng: np.random.Generator, theta: F64, n_actions: int) -> tuple[F64, F64]:
    """A decision set of the sphere without a gap, and its means: (K, d), (K,).

    Half as many again are drawn as are needed, which mostly leaves enough within the band.
    """
    kept = np.empty(0, dtype=np.intp)
    while kept.size < n_actions:
        drafts = unit_rows(rng, n_actions + n_actions // 2 + 1, theta.size)
        products = drafts @ theta
        kept = np.flatnonzero(np.abs(products) <= TOP)[:n_actions]
    actions, means = drafts[kept], products[kept]
    best = int(rng.random() * n_actions)
    across = actions[best] - means[best] * theta
    across *= math.sqrt((1 - TOP**2) / (across @ across))
    actions[best], means[best] = TOP * theta + across, TOP
    return actions, means


def play(*, rounds: int, seed: int, dim: int, n_actions: int, horizon: int) -> Run:
    """The loop: a decision set, a choice, a reward."""
    rng = np.random.default_rng(seed)
    theta = unit_rows(rng, 1, dim)[0]
    learner = PlainLinUCB(dim, horizon)
    regret = 0.0
    start = time.perf_counter()
    for _ in range(rounds):
        actions, means = sphere_set(rng, theta, n_actions)
        chosen = learner.choose(actions)
        reward = 1.0 if rng.random() < 0.5 * (1.0 + means[chosen]) else -1.0
        learner.learn(actions[chosen], reward)
        regret += TOP - float(means[chosen])
    return Run(rounds=rounds, seconds=time.perf_counter() - start, regret=regret)
