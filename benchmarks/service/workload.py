"""What is asked of every server: one of twenty actions, for people who differ."""

import json
import random
from dataclasses import dataclass
from typing import Any

DIM = 32
ARMS = 20
DEVICES = ("phone", "desktop", "tablet")
TOPICS = ("sport", "art", "news", "music")
BANDIT = "bench"
BATCH = 100  # rewards in one request


@dataclass(frozen=True, kw_only=True)
class ServiceSizes:
    """How much is measured.

    Attributes:
        seconds: how long a load lasts.
        warmup: seconds of load before it, which do not count.
        connections: how many are open at the highest load.
        backlog: events that wait for the writer.
        soak: seconds of the long run at half load, which is measured only if it is asked for.
        soak_piece: seconds between two looks at the memory meanwhile.
    """

    seconds: float
    warmup: float
    connections: int
    backlog: int
    soak: float
    soak_piece: float


QUICK = ServiceSizes(
    seconds=4.0, warmup=1.0, connections=64, backlog=10_000, soak=60.0, soak_piece=10.0
)
DEFAULT = ServiceSizes(
    seconds=15.0, warmup=3.0, connections=64, backlog=60_000, soak=1800.0, soak_piece=60.0
)


def actions() -> list[dict[str, Any]]:
    """The twenty actions; the same for everybody, as on a page."""
    return [
        {
            "id": f"a{place}",
            "features": {
                "topic": TOPICS[place % len(TOPICS)],
                "length": (7 * place) % 50,
                "fresh": round(place / ARMS, 2),
            },
        }
        for place in range(ARMS)
    ]


def contexts(count: int, seed: int) -> list[dict[str, Any]]:
    """People who differ."""
    coin = random.Random(seed)  # a workload, and no noise
    return [
        {
            "age": coin.randrange(18, 90),
            "device": coin.choice(DEVICES),
            "hour": round(24.0 * coin.random(), 2),
        }
        for _ in range(count)
    ]


def rank_bodies(count: int, seed: int) -> list[bytes]:
    """Requests for a decision, as JSON: for the service, and for its neighbour in HTTP."""
    offered = actions()
    return [
        json.dumps({"context": one, "actions": offered}, separators=(",", ":")).encode()
        for one in contexts(count, seed)
    ]


def vw_examples(count: int, seed: int) -> list[bytes]:
    """The same requests in Vowpal Wabbit's text format, each with an empty line behind it."""
    offered = [
        f"|a id_{one['id']} topic_{one['features']['topic']} "
        f"length:{one['features']['length']} fresh:{one['features']['fresh']}"
        for one in actions()
    ]
    return [
        "\n".join(
            [
                f"shared |c age:{one['age']} device_{one['device']} hour:{one['hour']}",
                *offered,
                "",
                "",
            ]
        ).encode()
        for one in contexts(count, seed)
    ]


def reward_bodies(events: list[str], seed: int) -> list[bytes]:
    """Rewards for these events, in batches, each event once."""
    coin = random.Random(seed)
    rewards = [{"event_id": one, "value": float(coin.random() < 0.3)} for one in events]
    return [
        json.dumps(rewards[start : start + BATCH]).encode()
        for start in range(0, len(rewards) - BATCH + 1, BATCH)
    ]
