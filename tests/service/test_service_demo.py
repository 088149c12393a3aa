"""The visitors of the demonstration: what they like, that a learner finds out, that they come."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from running import ADMINISTRATOR, PATIENCE, running

import discreet
from discreet.client import Client, ClientError
from discreet.features import FeatureMap
from discreet.mechanism.noise.sources import SeededNoise
from discreet.service import _demo as demo

ARTICLES = [one["id"] for one in demo._articles()]
RATE, DELAY = 40, 5  # visitors a second, and seconds until their rows are learned


def chances(context: dict[str, object]) -> list[float]:
    return [demo._click_probability(context, one) for one in ARTICLES]


def test_choosing_at_random_and_knowing_everything_are_as_far_apart_as_the_module_says() -> None:
    hours = np.arange(0.005, 24.0, 0.01)
    contexts = [
        {"age": age, "device": device, "hour": hour}
        for age, device, hour in product(demo._AGES, demo._DEVICES, hours.tolist())
    ]
    found = np.array([chances(one) for one in contexts])
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    assert found.mean() == pytest.approx(0.25, abs=0.005)
    assert found.max(axis=1).mean() == pytest.approx(0.47, abs=0.005)


def test_the_map_tells_all_articles_and_all_kinds_of_visitors_apart() -> None:
    features = FeatureMap.from_json(demo._bandit()["features"])
    assert {f"action.id={one}" for one in ARTICLES} <= set(features.names)
    chance = random.Random(0)
    for _ in range(100):
        context = demo._visitor(chance)
        rows = features(context, demo._articles())
        assert len(np.unique(rows, axis=0)) == len(ARTICLES)
        assert features.explain(context, demo._articles()).counts == {}


def gains(seed: int, *, seconds: int) -> np.ndarray:
    """How far visitors are served from chance (0) to the best (1), second by second.

    The learner has the demonstration's settings, and learns from what was shown five seconds ago.
    """
    settings = demo._bandit()
    features = FeatureMap.from_json(settings["features"])
    bandit = discreet.LinUCB(
        discreet.Problem.between(
            0,
            1,
            dim=features.dim,
            action_norm=1,
            theta_norm=settings["theta_norm"],
            features=features.digest,
        ),
        horizon=settings["horizon"],
        privacy=discreet.Privacy(epsilon=settings["epsilon"], delta=settings["delta"]),
        noise_source=SeededNoise(np.random.SeedSequence(seed)),
    )
    chance, rows, served = random.Random(seed), [], []
    for second in range(seconds):
        ranker = discreet.Ranker(bandit.release, policy=bandit.policy)
        now, rewards = [], []
        for _ in range(RATE):
            context = demo._visitor(chance)
            sets = features(context, demo._articles())
            clicks = np.array(chances(context))
            place = chance.choices(range(len(sets)), ranker.probabilities(sets))[0]
            served.append((clicks[place], clicks.mean(), clicks.max()))
            now.append(sets[place])
            rewards.append(float(chance.random() < clicks[place]))
        rows.append((np.array(now), np.array(rewards)))
        if second >= DELAY:
            bandit.observe(*rows[second - DELAY])
    means = np.array(served).reshape(seconds, RATE, 3).mean(axis=1)
    return (means[:, 0] - means[:, 1]) / (means[:, 2] - means[:, 1])


@pytest.mark.parametrize("seed", [1, 2])
def test_a_private_learner_is_far_better_than_chance_within_two_minutes(seed: int) -> None:
    found = gains(seed, seconds=150)
    assert abs(found[:10].mean()) < 0.3
    assert found[120:].mean() > 0.6


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("service")) as address:
        yield address


def visits(client: Client) -> int:
    """How many visitors have come; none before there is a bandit."""
    try:
        return client.bandit("news").events
    except ClientError as error:
        if error.code != "BanditNotFound":
            raise
        return 0


def until_visits(client: Client, count: int) -> None:
    """Wait until so many visitors have come."""
    until = time.monotonic() + PATIENCE
    while visits(client) < count:
        assert time.monotonic() < until
        time.sleep(0.05)


def visiting(url: str, stop: threading.Event) -> threading.Thread:
    thread = threading.Thread(
        target=demo.run, args=(url, ADMINISTRATOR), kwargs={"stop": stop, "rate": 200.0, "seed": 0}
    )
    thread.start()
    return thread


def test_visitors_make_the_bandit_once_and_come_until_they_are_told_to_stop(url: str) -> None:
    with Client(url, ADMINISTRATOR, bandit="news") as client:
        for round_ in (1, 2):  # the second time the bandit is there already
            stop = threading.Event()
            thread = visiting(url, stop)
            try:
                until_visits(client, 40 * round_)
            finally:
                stop.set()
                thread.join(PATIENCE)
            assert not thread.is_alive()
        assert [one.name for one in client.bandits()] == ["news"]
        shown = client.bandit()
        assert (shown.epsilon, shown.delta, shown.state) == (1.0, 1e-6, "running")


@pytest.mark.parametrize("end", ["terminate", "parent"])
def test_the_visitors_process_ends_in_order_when_told_to_or_when_its_parent_ends(
    url: str, end: str
) -> None:
    with Client(url, ADMINISTRATOR) as client:
        before = visits(client)
    process = subprocess.Popen(  # our own command
        [sys.executable, "-m", "discreet.service._demo", "--url", url, "--rate", "100"],
        stdin=subprocess.PIPE,
        env={**os.environ, "DISCREET_KEY": ADMINISTRATOR, "DISCREET_PARENT": "1"},
    )
    try:
        with Client(url, ADMINISTRATOR) as client:
            until_visits(client, before + 1)
        assert process.stdin is not None
        process.terminate() if end == "terminate" else process.stdin.close()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate() if end == "terminate" else process.wait()


def test_without_a_key_it_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISCREET_KEY", raising=False)
    with pytest.raises(SystemExit) as caught:
        demo.main(["--url", "http://localhost:1"])
    assert caught.value.code == 2
    assert "DISCREET_KEY" in capsys.readouterr().err


def test_visitors_of_a_service_that_is_not_there_wait_until_they_are_told_to_stop() -> None:
    stop = threading.Event()
    thread = visiting("http://127.0.0.1:1", stop)
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_the_service_starts_its_visitors_itself(tmp_path: Path) -> None:
    with running(tmp_path, "--demo") as url, Client(url, ADMINISTRATOR) as client:
        until_visits(client, 5)
