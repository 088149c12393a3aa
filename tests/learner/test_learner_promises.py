"""What a learner promises follows it into its files, and out of them again."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from discreet import LinUCB, Privacy, Problem, load
from discreet.curator._storage import Storage
from discreet.errors import ParameterError
from discreet.mechanism import _feedback as feedback
from discreet.mechanism import strategies
from discreet.mechanism._grid import Grid
from discreet.mechanism.noise.sources import SeededNoise
from discreet.mechanism.variants import named
from helpers import died, full_disk, watched

TARGET = Privacy(epsilon=1.0, delta=1e-6)
PROBLEM = Problem(dim=2, action_norm=1.0, reward_bound=1.0, theta_norm=1.0)


def seeded() -> SeededNoise:
    return SeededNoise(np.random.SeedSequence(1))


def test_a_promise_is_not_continued_with_noise_that_can_be_repeated(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    LinUCB(PROBLEM, horizon=100, privacy=TARGET, path=path).close()
    with pytest.raises(ParameterError, match="noise_source: can be repeated"):
        load(path, noise_source=seeded())
    with load(path) as learner:
        assert learner.guarantee.private


def test_a_promise_that_was_void_stays_void(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    source = seeded()
    learner = LinUCB(PROBLEM, horizon=100, privacy=TARGET, path=path, noise_source=source)
    assert learner.ledger.card["epsilon"] is None
    died(learner)
    for noise_source in (None, source):
        with load(path, noise_source=noise_source) as again:
            assert not again.guarantee.private
            assert again.ledger.card["epsilon"] is None


def test_floating_point_noise_says_what_its_proof_does_not_cover(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    with LinUCB(PROBLEM, horizon=100, privacy=TARGET, noise="float", path=path) as learner:
        said = str(learner.guarantee)
        assert said.endswith("in floating point, whose rounding this does not cover.")
        assert learner.ledger.card["text"] == said
    with load(path) as again:
        assert str(again.guarantee) == said
    assert "floating" not in str(LinUCB(PROBLEM, horizon=100, privacy=TARGET).guarantee)


@dataclass(frozen=True)
class Mine(strategies.Buffered):
    """A strategy that only its author knows."""

    kind: ClassVar[str] = "mine"


def test_what_a_file_cannot_hold_is_refused_before_it_is_written(tmp_path: Path) -> None:
    variant = named("tight").with_strategy(Mine())
    learner = LinUCB(PROBLEM, horizon=100, privacy=TARGET, variant=variant)
    with pytest.raises(ParameterError, match=r"variant: .* which a file cannot hold"):
        learner.save(tmp_path / "stored")
    assert list(tmp_path.iterdir()) == []
    learner.learn(learner.choose([[1.0, 0.0]]), 1.0)
    assert learner.rows == 1


def test_what_ended_a_block_stays_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    learner = LinUCB(PROBLEM, horizon=100, privacy=TARGET, path=path)
    learner.learn(learner.choose([[1.0, 0.0]]), 1.0)
    watched(learner).before = full_disk("commit")  # so that closing cannot write the sums
    with pytest.raises(KeyboardInterrupt), learner:
        raise KeyboardInterrupt
    load(path).close()


def test_a_closed_learner_gives_up_its_files_even_on_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    learner = LinUCB(PROBLEM, horizon=100, privacy=TARGET, path=path)
    learner.learn(learner.choose([[1.0, 0.0]]), 1.0)
    watched(learner).before = full_disk("commit", "append")
    learner.close()
    with load(path) as again:
        assert again.rows == 1


def test_smaller_draws_make_rounding_dearer() -> None:
    class Long(strategies.SquareRoot):
        """The same encoder, three times as long: draws are a third as large."""

        def encoder(self, releases: int) -> np.ndarray:
            return 3 * super().encoder(releases)

    assert feedback.narrowest(Long().feedback(10)) == pytest.approx(1 / 3)
    once = feedback.slack(strategies.SquareRoot().feedback(10), releases=10, size=5, std=1e6)
    assert feedback.slack(Long().feedback(10), releases=10, size=5, std=1e6) == pytest.approx(
        3 * once
    )


def test_weights_that_cannot_be_computed_with_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: np.ndarray) -> np.ndarray:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "cholesky", fail)
    with pytest.raises(ParameterError, match="weights: are too far apart"):
        strategies.Optimised(np.geomspace(1, 1e-9, 7)).encoder(7)


def test_sums_that_cannot_be_stored_do_not_undo_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = LinUCB(PROBLEM, horizon=100, privacy=TARGET, path=tmp_path / "stored")
    learner._curator._storage.compact_at = 1

    def fail(*_: object) -> None:
        raise ValueError

    with monkeypatch.context() as broken:
        broken.setattr(Storage, "compaction", fail)
        learner.learn(learner.choose([[1.0, 0.0]]), 1.0)
    assert learner.rows == 1
    learner.close()
    with load(tmp_path / "stored") as again:
        assert again.rows == 1


def test_a_grid_refuses_steps_that_are_no_numbers() -> None:
    with pytest.raises(ParameterError, match="action_exponent"):
        Grid(action_exponent=-2000, reward_exponent=0)
