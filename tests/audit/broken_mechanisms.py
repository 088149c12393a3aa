"""Learners that promise more than they keep: each the real thing with one fault."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet import (
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
from discreet.curator import rows
from discreet.mechanism import Mechanism
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.schedules import every_round
from discreet.mechanism.variants import Tight

TARGET = Privacy(epsilon=1.0, delta=1e-6)
PROBLEM = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)
QUICK = Tight(schedule=every_round())  # a release after every row: short streams
Make = Callable[[], LinUCB]


def made(mechanism: Mechanism, on_violation: str = "error") -> Make:
    """Learners with this mechanism, each with noise of its own."""
    return partial(LinUCB.from_mechanism, mechanism, on_violation=on_violation)


def sound(horizon: int = 1, *, variant: Tight = QUICK, noise: str = "float") -> Mechanism:
    """The real thing."""
    return variant.mechanism(Setting(problem=PROBLEM, horizon=horizon), TARGET, noise=noise)


def with_noise(mechanism: Mechanism, *, gram: float = 1.0, moment: float = 1.0) -> Mechanism:
    """The same with multiples of the noise, and the same promise."""
    law = mechanism.noise
    scaled = GaussianNoise(std=gram * law.std, moment_std=moment * law.moment_std)
    return replace(mechanism, noise=scaled)


def half_the_noise() -> Make:
    """Calibrated by somebody who lost a factor of two."""
    return made(with_noise(sound(), gram=0.5, moment=0.5))


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


def floating_point() -> Config:
    """Noise in ordinary floating point, as the library draws it when asked to."""
    return Config(problem=PROBLEM, privacy=TARGET, variant=QUICK, noise="float")


@contextmanager
def without_clipping() -> Iterator[Make]:
    """A curator that takes rows as they come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "bounded_actions", lambda _, actions, __: np.array(actions))
        patch.setattr(rows, "still_bounded", lambda _, actions: [np.array(one) for one in actions])
        patch.setattr(rows, "bounded_reward", lambda _, reward, __: float(reward))
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
