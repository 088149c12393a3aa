"""FastAPI and MABWiser in memory: what one writes in an afternoon.

The same requests and the same answers as the service's, with a LinUCB of d = 32 for each of the
twenty actions, which does not look at actions' features. Decisions are in a dictionary until a
reward comes. Nothing is private, and nothing is on a disk.
"""

import sys
import uuid
import zlib
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from mabwiser.mab import MAB, LearningPolicy
from pydantic import BaseModel

from benchmarks.service.workload import DIM, actions

_SAMPLE = 400  # rows to begin with, because MABWiser predicts only after a fit

app = FastAPI()
waiting: dict[str, tuple[str, Any]] = {}
arms = [one["id"] for one in actions()]
_rng = np.random.default_rng(1)
model = MAB(arms=arms, learning_policy=LearningPolicy.LinUCB(alpha=1.0))
model.fit(
    [arms[place % len(arms)] for place in range(_SAMPLE)],
    _rng.random(_SAMPLE),
    _rng.normal(size=(_SAMPLE, DIM)) / np.sqrt(DIM),
)


class Action(BaseModel):
    """One of the actions."""

    id: str
    features: dict[str, Any] = {}


class Rank(BaseModel):
    """A request for a decision."""

    context: dict[str, Any] = {}
    actions: list[Action]


class Reward(BaseModel):
    """What came of one."""

    event_id: str
    value: float


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether it answers."""
    return {"status": "ok"}


@app.post("/rank", status_code=201)
async def rank(request: Rank) -> dict[str, Any]:
    """Choose an action."""
    row = np.zeros((1, DIM))
    for name, value in request.context.items():
        row[0, zlib.crc32(f"{name}={value}".encode()) % DIM] += 1.0
    found = model.predict_expectations(row)
    order = sorted((one.id for one in request.actions), key=found.__getitem__, reverse=True)
    event = uuid.uuid4().hex
    waiting[event] = (order[0], row)
    ranking = [{"id": one, "probability": float(one == order[0])} for one in order]
    return {"event_id": event, "action_id": order[0], "ranking": ranking}


@app.post("/rewards", status_code=207)
async def rewards(given: list[Reward]) -> list[dict[str, Any]]:
    """Learn from rewards."""
    found = [(waiting.pop(one.event_id, None), one.value) for one in given]
    known = [(*one, value) for one, value in found if one is not None]
    if known:
        arm, row, value = zip(*known, strict=True)
        model.partial_fit(list(arm), list(value), np.concatenate(row))
    return [
        {"event_id": one.event_id, "verdict": "unknown" if before is None else "accepted"}
        for one, (before, _) in zip(given, found, strict=True)
    ]


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,  # as the service's
    )
