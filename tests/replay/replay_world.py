"""A small log whose truth is known: two kinds of people, three actions, rewards 0 and 1."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

ACTIONS = ("red", "green", "blue")
KINDS = ("young", "old")
MEANS = np.array([[0.2, 0.4, 0.8], [0.8, 0.4, 0.2]])  # kind, action
LOGGING = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
BEST = 0.8  # always the best action; uniform is worth 7/15, any fixed one at most 0.5
UNIFORM = float(MEANS.mean())
LOGGED = float((LOGGING * MEANS).sum(axis=1).mean())
SPEC: dict[str, Any] = {
    "format": "discreet-features",
    "version": 1,
    "parts": [
        {
            "kind": "cross",
            "a": {"kind": "category", "path": "context.kind", "values": list(KINDS)},
            "b": {"kind": "action_id", "ids": list(ACTIONS)},
        },
        {
            "kind": "cross",
            "a": {"kind": "numeric", "path": "context.age", "low": 0, "high": 100},
            "b": {"kind": "action_id", "ids": list(ACTIONS)},
            "weight": 0.5,
        },
    ],
}


def table(rows: int, *, seed: int = 0, uniform: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, rows)
    chances = np.full((rows, 3), 1 / 3) if uniform else LOGGING[kind]
    action = (rng.random(rows)[:, None] > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    reward = (rng.random(rows) < MEANS[kind, action]).astype(int)
    return {
        "user": np.array([f"u{number // 2}" for number in range(rows)]),
        "kind": np.array(KINDS)[kind],
        "age": np.round(rng.uniform(0, 110, rows), 1),
        "shown": np.array(ACTIONS)[action],
        "chance": chances[np.arange(rows), action],
        "clicked": reward,
    }


def written(path: Path, columns: dict[str, np.ndarray], **options: Any) -> Path:  # noqa: ANN401
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **options)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return path
