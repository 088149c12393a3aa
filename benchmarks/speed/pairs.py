"""Pairs of `choose` and `learn` through public names that every version of discreet has.

It runs by itself too, so that the stored learner of another checkout can be measured:
``PYTHONPATH=CHECKOUT/src python benchmarks/speed/pairs.py FILE PAIRS`` prints one JSON object.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

import discreet

DIM, N_ACTIONS, HORIZON = 5, 25, 50_000_000
SETS = 16  # decision sets, offered in turns
WARM_UP = 8  # pairs: kernels are compiled and files are there


def sets() -> list[np.ndarray]:
    """Decision sets of vectors that are a little shorter than 1."""
    drawn = np.random.default_rng(0).standard_normal((SETS, N_ACTIONS, DIM))
    return list(0.999 * drawn / np.linalg.norm(drawn, axis=2, keepdims=True))


def learner(path: Path | None = None, *, max_pending: int = 10_000) -> discreet.LinUCB:
    """The default learner, in memory or stored at a path, warmed up."""
    bandit = discreet.LinUCB(
        discreet.Problem(dim=DIM, action_norm=1.0, reward_bound=1.0, theta_norm=1.0),
        horizon=HORIZON,
        privacy=discreet.Privacy(epsilon=1.0, delta=0.1),
        path=path,
        max_pending=max_pending,
    )
    play(bandit, WARM_UP)
    return bandit


def play(bandit: discreet.LinUCB, pairs: int) -> None:
    """Choose and learn so many times, one call after the other."""
    offered = sets()
    for turn in range(pairs):
        decision = bandit.choose(offered[turn % SETS])
        bandit.learn(decision, 1.0 if turn % 2 else -1.0)


def main(path: str, pairs: str) -> None:
    """Seconds of so many pairs with a learner that is stored at a path."""
    with learner(Path(path)) as bandit:
        start = time.perf_counter()
        play(bandit, int(pairs))
        seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "discreet": discreet.__file__}))


if __name__ == "__main__":
    main(*sys.argv[1:])
