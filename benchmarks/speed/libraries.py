"""Time of one decision and its reward, through the libraries a user would otherwise pick."""

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from statistics import median
from types import ModuleType

import numpy as np

from benchmarks.speed import adapters
from benchmarks.speed.adapters import Game, Player
from benchmarks.speed.results import Cell, Section
from benchmarks.speed.timing import in_own_process
from benchmarks.speed.workload import Sizes

NAME = "libraries"
NOT_INSTALLED = "not installed (pip install discreet[bench])"
WARM_UP = 50  # rounds in which caches fill


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
        player=adapters.Discreet,
        game=adapters.shared_game,
        note="`nonprivate`, choose and learn: the row to compare the others with.",
    ),
    Library(
        name="discreet, private",
        module="discreet",
        player=adapters.PrivateDiscreet,
        game=adapters.shared_game,
        note="`gaussian`, noise from the operating system; no other library has a counterpart.",
    ),
    Library(
        name="NumPy loop",
        module="numpy",
        player=adapters.Plain,
        game=adapters.shared_game,
        note="The same algorithm and the same data, without checks or storage.",
    ),
    Library(
        name="mabwiser",
        module="mabwiser.mab",
        player=adapters.MABWiser,
        game=adapters.disjoint_game,
        note=f"LinUCB, alpha 1. {_DISJOINT} Made for batches; here batches of one.",
    ),
    Library(
        name="river",
        module="river.bandit",
        player=adapters.River,
        game=adapters.disjoint_game,
        note=f"LinUCBDisjoint. {_DISJOINT} Its documentation calls it too slow for practice.",
    ),
    Library(
        name="contextualbandits",
        module="contextualbandits.online",
        player=adapters.ContextualBandits,
        game=adapters.disjoint_game,
        note=f"LinUCB, alpha 1, Sherman-Morrison. {_DISJOINT} Made for batches; here of one.",
    ),
    Library(
        name="vowpalwabbit",
        module="vowpalwabbit",
        player=adapters.VowpalWabbit,
        game=adapters.shared_game,
        note="--cb_explore_adf --regcbopt: the same problem and an optimistic rule, but a model "
        "trained by gradient steps, O(d) and not O(d^2) per action; examples pass as text.",
    ),
)


def measure(sizes: Sizes) -> Section:
    """Each library in a process of its own, with one BLAS thread."""
    rows = [
        in_own_process(
            __name__,
            "row",
            name=library.name,
            rounds=sizes.library_rounds,
            seconds=sizes.library_seconds,
        )
        for library in LIBRARIES
    ]
    ours = rows[0]["median_us"]
    for found in rows:
        found["times_discreet"] = found["median_us"] and found["median_us"] / ours
    return Section(
        name=NAME,
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


def row(*, name: str, rounds: int, seconds: float) -> dict[str, Cell]:
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
