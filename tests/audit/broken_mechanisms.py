"""Learners that promise more than they keep: each the real thing with one fault."""

import math
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import (
    UCB,
    VARIANTS,
    Guarantee,
    LinUCB,
    NoiseBounds,
    Privacy,
    Problem,
    Setting,
    Supplied,
)
from discreet.audit import Config
from discreet.curator import _subjects as subjects
from discreet.curator import bounds
from discreet.curator._subjects import Book, Forgotten
from discreet.curator.curator import Curator
from discreet.evaluation import _private as private
from discreet.evaluation._calibration import Law, calibrated
from discreet.kernels._sums import Arrays
from discreet.kernels._windows import Step
from discreet.mechanism import Mechanism
from discreet.mechanism._feedback import Whole, WindowFeedback
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.noise.sources import SystemNoise
from discreet.mechanism.schedules import every_round
from discreet.mechanism.strategies import Windows
from discreet.mechanism.variants import Tight, Windowed
from discreet.service import _events
from discreet.service._database import Connection
from discreet.service._events import Decided, Pending
from discreet.service._joiner import Joiner

TARGET = Privacy(epsilon=1.0, delta=1e-6)
PROBLEM = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
QUICK = Tight(schedule=every_round())  # a release after every row: short streams
Make = Callable[[], LinUCB]
HONEST_DUE, HONEST_RECORD = _events.due, _events.record


def made(mechanism: Mechanism, on_violation: str = "error") -> Make:
    """Learners with this mechanism, each with noise of its own."""
    return partial(LinUCB.from_mechanism, mechanism, policy=UCB(), on_violation=on_violation)


def sound(
    horizon: int = 1,
    *,
    variant: Tight = QUICK,
    noise: str = "float",
    target: Privacy = TARGET,
) -> Mechanism:
    """The real thing."""
    return variant.mechanism(Setting(problem=PROBLEM, horizon=horizon), target, noise=noise)


def with_noise(mechanism: Mechanism, *, gram: float = 1.0, moment: float = 1.0) -> Mechanism:
    """The same with multiples of the noise, and the same promise."""
    law = mechanism.noise
    scaled = GaussianNoise(std=gram * law.std, moment_std=moment * law.moment_std)
    return replace(mechanism, noise=scaled)


def half_the_noise(target: Privacy = TARGET) -> Make:
    """Calibrated by somebody who lost a factor of two."""
    return made(with_noise(sound(target=target), gram=0.5, moment=0.5))


def no_moment_noise() -> Make:
    """The Gram matrix is protected and the moment is not."""
    return made(with_noise(sound(), moment=1e-9))


def redrawn(horizon: int) -> LinUCB:
    """Noise that would do for one release, drawn anew for each."""
    law = sound(variant=Tight(schedule=every_round(), ratio=1.0)).noise
    normals = np.random.default_rng().normal(size=(horizon + 2, 2, 2))
    moments = np.random.default_rng().normal(size=(horizon + 2, 2))

    def drawn(turn: int) -> tuple[np.ndarray, np.ndarray]:
        square = normals[turn] + normals[turn].T
        return law.std * square / math.sqrt(2), law.moment_std * moments[turn]

    supplied = Supplied(
        perturbations=drawn,
        bounds=NoiseBounds(rho_min=1.0, rho_max=2.0, gamma=1.0),
        guarantee=Guarantee.meeting(TARGET, "somebody thought so"),
    )
    return LinUCB(PROBLEM, horizon=horizon, variant=supplied)


def shared(horizon: int) -> LinUCB:
    """The same noise in every release: it would do for one."""
    law = sound(variant=Tight(schedule=every_round(), ratio=1.0)).noise
    square, moment = (
        np.random.default_rng().normal(size=(2, 2)),
        np.random.default_rng().normal(size=2),
    )
    noise = law.std * (square + square.T) / math.sqrt(2), law.moment_std * moment
    supplied = Supplied(
        perturbations=lambda _: noise,
        bounds=NoiseBounds(rho_min=1.0, rho_max=2.0, gamma=1.0),
        guarantee=Guarantee.meeting(TARGET, "somebody thought so"),
    )
    return LinUCB(PROBLEM, horizon=horizon, variant=supplied)


# A release after every row: short streams, and windows that decay quickly. One feature, so that
# there is little besides the row that an attack has to weigh.
SMALL_WINDOWS = Windowed(start=1e-3, growth=1e-3, root=1e-3)
LINE = Problem(dim=1, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
WINDOWS_ROWS = 15  # as many releases as are weighed against each other
LOOSE = Privacy(epsilon=8.0, delta=1e-6)  # few trials tell twice this from this


def sound_windows(noise: str = "float") -> Mechanism:
    """The real thing."""
    setting = Setting(problem=LINE, horizon=WINDOWS_ROWS)
    return SMALL_WINDOWS.mechanism(setting, LOOSE, noise=noise)


def windows_with_half_the_noise() -> Make:
    """Calibrated by somebody who lost a factor of two."""
    return made(with_noise(sound_windows(), gram=0.5, moment=0.5))


class Repeating(SystemNoise):
    """A generator that gives the same numbers again and again."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = super().normals(1000)

    def normals(self, count: int) -> np.ndarray:
        return self._numbers[:count].copy()


def windows_with_one_draw() -> LinUCB:
    """The same draw for all windows: it would do for one."""
    return LinUCB.from_mechanism(sound_windows(), policy=UCB(), noise_source=Repeating())


class _Undecayed(WindowFeedback):
    """Forgets that windows decay."""

    def release(self, held: Arrays, batch: Whole, draw: Whole, times: Step) -> Arrays:
        kept = Arrays(held.nodes * times.rows, held.idle, held.totals)
        if times.before:
            kept = Arrays(kept.nodes // times.before, held.idle, held.totals)
        return super().release(kept, batch, draw, times)


class _NotEnlarged(WindowFeedback):
    """Forgets that a window's draw is larger than one draw."""

    def spread(self, number: int, times: Step) -> float:
        del number, times
        return 1.0


class UndecayedWindows(Windows):
    """State that windows decay, and do not."""

    def feedback(self, releases: int) -> WindowFeedback:
        return _Undecayed(self.filter, self.schedule.timing, releases)


class NotEnlargedWindows(Windows):
    """State that draws are enlarged, and do not."""

    def feedback(self, releases: int) -> WindowFeedback:
        return _NotEnlarged(self.filter, self.schedule.timing, releases)


def _faulty(faulty: type[Windows]) -> Make:
    mechanism = sound_windows("exact")
    own = mechanism.strategy
    settings = {one.name: getattr(own, one.name) for one in fields(own)}
    return made(replace(mechanism, strategy=faulty(**settings)))


def windows_that_do_not_decay() -> Make:
    """Noise as if older rows counted less, and they do not: columns are longer than 1."""
    return _faulty(UndecayedWindows)


def windows_with_too_small_draws() -> Make:
    """Every window has the noise that would do if there were no other window."""
    return _faulty(NotEnlargedWindows)


def floating_point() -> Config:
    """Noise in ordinary floating point, as the library draws it when asked to."""
    return Config(problem=PROBLEM, privacy=TARGET, variant=QUICK, noise="float")


@contextmanager
def without_clipping() -> Iterator[Make]:
    """A curator that takes rows as they come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "bounded_actions", lambda _, actions, __: np.array(actions))
        patch.setattr(bounds, "still_bounded", lambda _, actions: list(map(np.array, actions)))
        patch.setattr(bounds, "bounded_reward", lambda _, reward, __: float(reward))
        yield made(sound(), on_violation="clip")


def paper_tree() -> Make:
    """The paper's Gaussian variant with one row: its noise is drawn before the row comes."""
    setting = Setting(problem=PROBLEM, horizon=1)
    return made(VARIANTS["gaussian"].mechanism(setting, TARGET, noise="exact"))


def load_without_ledger(path: Path) -> LinUCB:
    """A store that ignores its ledger: it takes back what does not suit the state at hand."""
    ledger = path.with_name(f"{path.name}.ledger")
    first = ledger.read_bytes().splitlines(keepends=True)[0]
    ledger.write_bytes(first)
    return discreet.load(path)


@contextmanager
def without_cap() -> Iterator[Make]:
    """A curator that counts people's rows and does not mind how many there are."""

    def counted(self: Book, digest: bytes, ahead: Mapping[bytes, int], people: int) -> int:
        record = ahead.get(digest, self.counts.get(digest))
        return (subjects.pack(people, 0, 0) if record is None else record) + 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Book, "counted", counted)
        yield made(sound_windows("exact"))


@contextmanager
def forgetting_gives_the_budget_back() -> Iterator[Make]:
    """A curator that erases how many rows a person had as well, and counts from zero again."""
    forget = Curator.forget_subject

    def forget_all(self: Curator, subject: object) -> Forgotten:
        found = forget(self, subject)
        book = self._held.book
        book.counts.pop(book.digest(subject), None)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curator, "forget_subject", forget_all)
        yield made(sound_windows("exact"))


@contextmanager
def values_with_half_the_noise() -> Iterator[Make]:
    """Private values by somebody who lost a factor of two."""

    def halved(privacy: Privacy, policies: int) -> Law:
        law = calibrated(privacy, policies)
        names = [one.name for one in fields(law) if one.name != "bits"]
        return replace(law, **{name: getattr(law, name) // 2 for name in names})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(private, "calibrated", halved)
        yield made(sound_windows("exact"))


def joined() -> Make:
    """Learners for the service's joiner, with a release after every row."""
    return made(sound(8, noise="exact"))


@contextmanager
def joiner_that_closes_with_the_reward() -> Iterator[Make]:
    """An event with a reward waits for nothing more: when it is closed tells that one came."""

    def due(
        connection: Connection, bandit: int, after: int, now: float, most: int
    ) -> list[Pending]:
        waiting = HONEST_DUE(connection, bandit, after, math.inf, most)
        ready = [one.deadline <= now or one.reward is not None for one in waiting]
        return waiting[: ready.index(False)] if False in ready else waiting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_events, "due", due)
        yield joined()


@contextmanager
def joiner_that_drops(what: Callable[[Pending], bool]) -> Iterator[Make]:
    """Some events leave no row: how many rows there are tells how many there were."""
    done = weakref.WeakKeyDictionary[Joiner, int]()

    def close_due(self: Joiner) -> int:
        after, before = done.get(self, 0), self.learner.rows
        due = HONEST_DUE(self._connection, self._bandit, after, self._clock(), 10**6)
        done[self] = after + len(due)
        for one in due:
            if not what(one):
                self._learn([one])
        return self.learner.rows - before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Joiner, "_close_due", close_due)
        yield joined()


@contextmanager
def joiner_that_does_not_say_whose() -> Iterator[Make]:
    """Events lose their subject on the way, so a person's rows all count."""

    def record(
        connection: Connection, bandit: int, decided: list[Decided], now: float
    ) -> list[object]:
        return HONEST_RECORD(
            connection, bandit, [one._replace(subject=None) for one in decided], now
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_events, "record", record)
        yield made(sound_windows("exact"))


REWARDS = replace(LOOSE, protects="rewards")


def sound_rewards(variant: Tight | Windowed = QUICK, horizon: int = 1) -> Mechanism:
    """The real thing, where rewards alone are protected."""
    problem = LINE if isinstance(variant, Windowed) else PROBLEM
    return variant.mechanism(Setting(problem=problem, horizon=horizon), REWARDS)


def rewards_with_less_noise(share: float) -> Make:
    """Calibrated by somebody who took the sensitivity to be B or less, instead of 2B."""
    return made(with_noise(sound_rewards(), moment=share))


def windows_of_rewards_with_half_the_noise() -> Make:
    """The same, over several releases."""
    return made(with_noise(sound_rewards(SMALL_WINDOWS, WINDOWS_ROWS), moment=0.5))
