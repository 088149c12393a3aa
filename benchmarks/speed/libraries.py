"""Time of one decision and its reward, through the libraries a user would otherwise pick.

Each library is behind the same two calls. It is looked up by name when it is measured: none of
them is a dependency.
"""

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from statistics import median
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from benchmarks.speed import workload
from benchmarks.speed.loops import PlainLinUCB, sphere_set
from benchmarks.speed.results import BenchSection, Cell
from benchmarks.speed.workload import DIM, F64, HORIZON, N_ACTIONS, BenchSizes, unit_rows

NOT_INSTALLED = "not installed (pip install discreet[bench])"
WARM_UP = 50  # rounds in which caches fill


@dataclass(frozen=True)
class Game:
    """Rounds drawn beforehand. What a player may see in round t is ``features[t]``.

    Attributes:
        features: decision sets, (T, K, d), or one person's context a round, (T, d).
        means: of every action in every round, (T, K).
    """

    features: F64
    means: F64


def shared_game(rounds: int) -> Game:
    """Actions with features and one parameter: what discreet is for."""
    rng = np.random.default_rng(0)
    theta = unit_rows(rng, 1, DIM)[0]
    drawn = [sphere_set(rng, theta, N_ACTIONS) for _ in range(rounds)]
    return Game(np.array([one[0] for one in drawn]), np.array([one[1] for one in drawn]))


def disjoint_game(rounds: int) -> Game:
    """A context for the round and a parameter for each of the actions, which have no features."""
    rng = np.random.default_rng(0)
    thetas = unit_rows(rng, N_ACTIONS, DIM)
    contexts = unit_rows(rng, rounds, DIM)
    return Game(contexts, contexts @ thetas.T)


class Player(Protocol):
    """A library, ready to play a game."""

    def choose(self, turn: int) -> int:
        """The action for a round."""

    def learn(self, turn: int, action: int, reward: float) -> None:
        """Take in the reward of that action."""


class Discreet:
    """`discreet.LinUCB`, through the calls a user makes."""

    variant = "nonprivate"

    def __init__(self, _: ModuleType, game: Game) -> None:
        """Make a learner for the shared game."""
        self.game = game
        self.bandit = workload.learner(self.variant, dim=DIM, n_actions=N_ACTIONS)

    def choose(self, turn: int) -> int:
        """Keep the decision for its reward."""
        self.decision = self.bandit.choose(self.game.features[turn])
        return self.decision.index

    def learn(self, turn: int, action: int, reward: float) -> None:  # noqa: ARG002  # in the decision
        """Give the decision back."""
        self.bandit.learn(self.decision, reward)


class PrivateDiscreet(Discreet):
    """The same with the paper's Gaussian noise."""

    variant = "gaussian"


class NumPyLoop:
    """LinUCB as one writes it in NumPy."""

    def __init__(self, _: ModuleType, game: Game) -> None:
        """Start with the regularizer alone."""
        self.game, self.bandit = game, PlainLinUCB(DIM, HORIZON)

    def choose(self, turn: int) -> int:
        """The index of a row."""
        return self.bandit.choose(self.game.features[turn])

    def learn(self, turn: int, action: int, reward: float) -> None:
        """Add the row."""
        self.bandit.learn(self.game.features[turn, action], reward)


class MABWiser:
    """LinUCB of MABWiser: a ridge regression for each arm."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """It wants to be fitted once before it predicts."""
        self.contexts = game.features
        policy = module.LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0)
        self.bandit: Any = module.MAB(arms=list(range(N_ACTIONS)), learning_policy=policy)
        self.bandit.fit(decisions=[0], rewards=[0.0], contexts=self.contexts[:1])

    def choose(self, turn: int) -> int:
        """The name of an arm."""
        return int(self.bandit.predict(self.contexts[turn : turn + 1]))

    def learn(self, turn: int, action: int, reward: float) -> None:
        """A batch of one."""
        self.bandit.partial_fit([action], [reward], self.contexts[turn : turn + 1])


class River:
    """LinUCBDisjoint of river: a Bayesian regression for each arm, features by name."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """Contexts become dictionaries beforehand."""
        self.contexts = [dict(enumerate(context.tolist())) for context in game.features]
        self.bandit: Any = module.LinUCBDisjoint(seed=0)
        self.arms = list(range(N_ACTIONS))

    def choose(self, turn: int) -> int:
        """The name of an arm."""
        return int(self.bandit.pull(self.arms, context=self.contexts[turn]))

    def learn(self, turn: int, action: int, reward: float) -> None:
        """One observation."""
        self.bandit.update(action, self.contexts[turn], reward)


class ContextualBandits:
    """LinUCB of contextualbandits: a ridge regression for each arm, rewards of 0 or 1."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """One thread, no intercept."""
        self.contexts = game.features
        self.bandit: Any = module.LinUCB(
            N_ACTIONS, alpha=1.0, fit_intercept=False, random_state=1, njobs=1
        )

    def choose(self, turn: int) -> int:
        """A batch of one."""
        return int(self.bandit.predict(self.contexts[turn : turn + 1])[0])

    def learn(self, turn: int, action: int, reward: float) -> None:
        """A batch of one."""
        row, won = self.contexts[turn : turn + 1], np.array([float(reward > 0)])
        self.bandit.partial_fit(row, np.array([action]), won)


class VowpalWabbit:
    """--cb_explore_adf --regcbopt of Vowpal Wabbit: actions with features, one model, optimism."""

    def __init__(self, module: ModuleType, game: Game) -> None:
        """Examples are text, written on the way as a user would."""
        self.sets = game.features
        self.bandit: Any = module.Workspace(
            "--cb_explore_adf --regcbopt --mellowness 0.01 --noconstant --quiet"
        )

    def choose(self, turn: int) -> int:
        """The likeliest action: the optimistic rule puts all weight on its candidates."""
        self.lines = [
            "|a " + " ".join(f"{i}:{value:.6g}" for i, value in enumerate(row))
            for row in self.sets[turn].tolist()
        ]
        self.weights = self.bandit.predict(self.lines)
        return int(np.argmax(self.weights))

    def learn(self, turn: int, action: int, reward: float) -> None:  # noqa: ARG002  # in the lines
        """The chosen line, labelled with its cost and its probability."""
        self.lines[action] = f"0:{-reward}:{self.weights[action]:.6g} {self.lines[action]}"
        self.bandit.learn(self.lines)


@dataclass(frozen=True, kw_only=True)
class Library:
    """A row of the table.

    Attributes:
        name: the distribution's.
        module: what is imported.
        player: how it plays.
        game: what it can play.
        note: what is comparable, and what is not.
    """

    name: str
    module: str
    player: Callable[[ModuleType, Game], Player]
    game: Callable[[int], Game]
    note: str


_DISJOINT = (
    "Another problem: a model for each arm and one context a round. An arm has no features, so "
    "what is learnt of one arm says nothing of another, and 25 small models are scored."
)

LIBRARIES = (
    Library(
        name="discreet",
        module="discreet",
        player=Discreet,
        game=shared_game,
        note="`nonprivate`, choose and learn: the row to compare the others with.",
    ),
    Library(
        name="discreet, private",
        module="discreet",
        player=PrivateDiscreet,
        game=shared_game,
        note="`gaussian`, noise from the operating system; no other library has a counterpart.",
    ),
    Library(
        name="NumPy loop",
        module="numpy",
        player=NumPyLoop,
        game=shared_game,
        note="The same algorithm and the same data, without checks or storage.",
    ),
    Library(
        name="mabwiser",
        module="mabwiser.mab",
        player=MABWiser,
        game=disjoint_game,
        note=f"LinUCB, alpha 1. {_DISJOINT} Made for batches; here batches of one.",
    ),
    Library(
        name="river",
        module="river.bandit",
        player=River,
        game=disjoint_game,
        note=f"LinUCBDisjoint. {_DISJOINT} Its documentation calls it too slow for practice.",
    ),
    Library(
        name="contextualbandits",
        module="contextualbandits.online",
        player=ContextualBandits,
        game=disjoint_game,
        note=f"LinUCB, alpha 1, Sherman-Morrison. {_DISJOINT} Made for batches; here of one.",
    ),
    Library(
        name="vowpalwabbit",
        module="vowpalwabbit",
        player=VowpalWabbit,
        game=shared_game,
        note="--cb_explore_adf --regcbopt: the same problem and an optimistic rule, but a model "
        "trained by gradient steps, O(d) and not O(d^2) per action; examples pass as text.",
    ),
)


def libraries(sizes: BenchSizes) -> BenchSection:
    """Each library in a process of its own, with one BLAS thread."""
    rows = [
        workload.in_own_process(
            __name__,
            "library_row",
            name=library.name,
            rounds=sizes.library_rounds,
            seconds=sizes.library_seconds,
        )
        for library in LIBRARIES
    ]
    ours = rows[0]["median_us"]
    for found in rows:
        found["times_discreet"] = found["median_us"] and found["median_us"] / ours
    return BenchSection(
        name="libraries",
        title="microseconds to choose and learn once, 5 features, 25 actions",
        rows=tuple(rows),
        notes=(
            (
                "Rounds are drawn beforehand and do not count. Regret is the mean cost of a choice "
                "over all rounds played, beside that of choosing at random in the same game: it "
                "shows that a library learns, and is no ranking, as games and rounds differ. All "
                "but discreet and the NumPy loop run with their own default confidence."
            ),
            "A row with status `not installed` was not measured.",
        ),
        figures={
            f"{found['library']}_over_discreet": found["times_discreet"]
            for found in rows[1:]
            if found["times_discreet"] is not None
        },
    )


def library_row(*, name: str, rounds: int, seconds: float) -> dict[str, Cell]:
    """One library's row, whatever becomes of it."""
    library = next(one for one in LIBRARIES if one.name == name)
    found: dict[str, Cell] = {
        "library": library.name,
        "median_us": None,
        "regret": None,
        "random_regret": None,
        "rounds": None,
        "status": NOT_INSTALLED,
        "note": library.note,
    }
    try:
        module = importlib.import_module(library.module)
    except ImportError:
        return found
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a library's own business
            found |= _play(library, module, rounds, seconds)
        found["status"] = _version(library.module)
    except Exception as error:  # noqa: BLE001  # a library that changed must not end the run
        found["status"] = f"failed: {type(error).__name__}: {error}"
    return found


def _play(library: Library, module: ModuleType, rounds: int, seconds: float) -> dict[str, Cell]:
    game = library.game(rounds + WARM_UP)
    player = library.player(module, game)
    luck = np.random.default_rng(1).random(len(game.means))
    best = game.means.max(axis=1)
    times, regrets = [], []
    end = time.perf_counter() + seconds
    for turn, means in enumerate(game.means):
        start = time.perf_counter()
        action = player.choose(turn)
        chosen = time.perf_counter()
        reward = 1.0 if luck[turn] < 0.5 * (1.0 + means[action]) else -1.0
        again = time.perf_counter()
        player.learn(turn, action, reward)
        now = time.perf_counter()
        times.append(1e6 * (chosen - start + now - again))
        regrets.append(float(best[turn] - means[action]))
        if now > end and turn > WARM_UP:
            break
    return {
        "median_us": median(times[WARM_UP:]),
        "regret": float(np.mean(regrets)),
        "random_regret": float((best[:, None] - game.means).mean()),
        "rounds": len(times),
    }


def _version(module: str) -> str:
    try:
        return metadata.version(module.split(".", maxsplit=1)[0])
    except metadata.PackageNotFoundError:
        return "measured"
