"""The visitors of `discreet serve --demo`: readers of a news page who do not exist.

They come through the typed client, as a real page would, and know nothing else of the service. What
they like is written down here (`_click_probability`), so it can be said how well they are served:
choosing at random they click about 25 times in 100, with the best article for each 47 times.

    DISCREET_KEY=dk_... python -m discreet.service._demo --url http://localhost:8080
"""

import argparse
import contextlib
import heapq
import os
import random
import signal
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from discreet import features
from discreet.client import Client, ClientError, Retries

__all__ = ["main", "run"]

_BANDIT = "news"
_ARTICLES = {
    "budget-vote": "politics",
    "cup-final": "sport",
    "mars-probe": "science",
    "new-museum": "arts",
    "city-marathon": "sport",
    "opera-night": "arts",
}
_TOPICS = ("politics", "sport", "science", "arts")
_AGES = ("under 30", "30 to 59", "60 and over")
_DEVICES = ("phone", "desktop")
_BASE = 0.08
_LIKED = {  # by age: what they like beyond that
    "under 30": {"sport": 0.35, "science": 0.10},
    "30 to 59": {"politics": 0.30, "science": 0.15},
    "60 and over": {"arts": 0.35, "politics": 0.10},
}
_EVENING, _NOON = 18.0, 11.0
_WAIT = 5.0  # seconds in which a click must come
_READING = (0.3, 3.0)  # seconds until one does
_VISITORS = 4  # at a time
_PAUSE = 1.0  # seconds, after a service that did not answer
_EXISTS = 409


def _click_probability(context: Mapping[str, Any], article: str) -> float:
    """How likely a visitor is to click.

    Args:
        context: age, device and hour.
        article: the id of what is shown.

    Returns:
        A probability; no learner is told.
    """
    topic, hour = _ARTICLES[article], context["hour"]
    more = {
        ("phone", "sport"): 0.10,
        ("desktop", "science"): 0.15,
    }.get((context["device"], topic), 0.0)
    if (hour >= _EVENING and topic == "arts") or (hour < _NOON and topic == "politics"):
        more += 0.10
    if article == "cup-final":
        more += 0.05
    return _BASE + _LIKED[context["age"]].get(topic, 0.0) + more


def _visitor(chance: random.Random) -> dict[str, Any]:
    """Who comes next.

    Args:
        chance: where the coincidence comes from.

    Returns:
        A context: age, device and hour.
    """
    return {
        "age": chance.choice(_AGES),
        "device": chance.choice(_DEVICES),
        "hour": round(chance.uniform(0.0, 24.0), 2),
    }


def _articles() -> list[dict[str, Any]]:
    """What there is to show, as `Client.rank` takes it."""
    return [{"id": one, "features": {"topic": topic}} for one, topic in _ARTICLES.items()]


def _bandit() -> dict[str, Any]:
    """The bandit `news`, as `Client.create_bandit` takes it."""
    topic = features.category("action.topic", _TOPICS)
    age = features.category("context.age", _AGES)
    device = features.category("context.device", _DEVICES)
    hour = features.numeric("context.hour", 0.0, 24.0, knots=3)
    parts = (
        features.intercept(),
        features.action_id(list(_ARTICLES)),
        features.cross(age, topic, weight=2.0),
        features.cross(device, topic),
        features.cross(hour, topic),
    )
    return {
        "epsilon": 1.0,
        "delta": 1e-6,
        "horizon": None,
        "reward": {"low": 0.0, "high": 1.0, "wait_seconds": _WAIT, "default": 0.0},
        "features": features.FeatureMap(parts).to_json(),
        "theta_norm": 1.0,
    }


def run(
    url: str,
    key: str,
    *,
    stop: threading.Event,
    rate: float = 40.0,
    seed: int | None = None,
) -> None:
    """Make the bandit, if it is not there, and send visitors until told to stop.

    Args:
        url: of the service.
        key: of an administrator.
        stop: when set, visitors go home; clicks that have not come yet are lost.
        rate: visitors a second.
        seed: for visitors who can be repeated.
    """
    retries = Retries(attempts=3)  # when it is told to stop it should not hang on
    with Client(url, key, bandit=_BANDIT, context=_trust(url), retries=retries) as client:
        while not _there(client):
            if stop.wait(_PAUSE):
                return
        threads = [
            threading.Thread(
                target=_visit,
                args=(client, stop, rate / _VISITORS),
                kwargs={"chance": random.Random(seed if seed is None else seed + place)},
                name=f"visitors {place}",
            )
            for place in range(_VISITORS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _there(client: Client) -> bool:
    """Whether the bandit is there; it is made if not."""
    try:
        client.create_bandit(_BANDIT, **_bandit())
    except ClientError as error:
        return error.status == _EXISTS
    return True


def _visit(client: Client, stop: threading.Event, rate: float, *, chance: random.Random) -> None:
    """Visitors, one after the other, and their clicks."""
    shown = _articles()
    clicks: list[tuple[float, str]] = []  # when, and of which event
    while not stop.wait(chance.expovariate(rate)):
        try:
            context = _visitor(chance)
            found = client.rank(shown, context=context)
            if chance.random() < _click_probability(context, found.action_id):
                heapq.heappush(
                    clicks, (time.monotonic() + chance.uniform(*_READING), found.event_id)
                )
            ready = _due(clicks, time.monotonic())
            if ready:
                client.rewards([(event_id, 1.0) for event_id in ready])
        except ClientError:  # away for a while, or being stopped
            stop.wait(_PAUSE)


def _due(clicks: list[tuple[float, str]], now: float) -> list[str]:
    """Take out the clicks whose time has come."""
    ready = []
    while clicks and clicks[0][0] <= now:
        ready.append(heapq.heappop(clicks)[1])
    return ready


def _trust(url: str) -> ssl.SSLContext | None:
    """A service on this very machine may have a certificate for another name."""
    if urlsplit(url).hostname not in {"127.0.0.1", "::1", "localhost"}:
        return None
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def main(arguments: Sequence[str] | None = None) -> int:
    """Send visitors until SIGTERM, or until the process that started this one ends.

    Args:
        arguments: of the command line.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="python -m discreet.service._demo", description=__doc__)
    parser.add_argument("--url", required=True, help="where the service is")
    parser.add_argument("--rate", type=float, default=40.0, help="visitors a second")
    given = parser.parse_args(arguments)
    key = os.environ.get("DISCREET_KEY")
    if not key or not given.rate > 0.0:
        parser.error("give an administrator's key in DISCREET_KEY, and a rate above 0")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if os.environ.get("DISCREET_PARENT") == "1":
        threading.Thread(target=_until_parent_ends, args=(stop,), daemon=True).start()
    run(given.url, key, stop=stop, rate=given.rate)
    return 0


def _until_parent_ends(stop: threading.Event) -> None:
    """Standard input is a pipe from the parent: it ends with the parent, however that ends."""
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    stop.set()


if __name__ == "__main__":
    raise SystemExit(main())
