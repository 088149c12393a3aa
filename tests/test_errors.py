"""The family of errors: what each carries, and how it travels between threads and processes."""

import copy
import inspect
import pickle

import pytest

from discreet import errors

FAMILY = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.DiscreetError)
]


@pytest.mark.parametrize("kind", FAMILY)
def test_an_error_carries_the_parameter_and_the_advice_and_says_both_in_one_line(
    kind: type[errors.DiscreetError],
) -> None:
    error = kind("reward", "is not a number")
    assert (error.parameter, error.advice) == ("reward", "is not a number")
    assert str(error) == "reward: is not a number"


@pytest.mark.parametrize("kind", FAMILY)
def test_an_error_can_be_made_again_from_its_parts_and_survives_a_copy_and_a_pickle(
    kind: type[errors.DiscreetError],
) -> None:
    error = kind("reward", "is not a number")
    for other in (
        type(error)(error.parameter, error.advice),
        copy.copy(error),
        pickle.loads(pickle.dumps(error)),  # noqa: S301  # made a moment ago, here
    ):
        assert type(other) is kind
        assert vars(other) == vars(error)
        assert str(other) == str(error)


def test_what_an_error_names_besides_survives_a_pickle() -> None:
    broken = errors.BrokenLedgerError("ledger", "line 3 was altered", line=3)
    assert pickle.loads(pickle.dumps(broken)).line == 3  # noqa: S301  # made here
    forked = errors.ForkedStateError("other", "has another release 7", number=7)
    assert pickle.loads(pickle.dumps(forked)).number == 7  # noqa: S301  # made here


def test_who_must_reload_and_who_must_wait_are_told_apart() -> None:
    assert issubclass(errors.SecondWriterError, errors.ReloadNeededError)
    for kind in (errors.StoreError, errors.ReentrantCallError):
        assert issubclass(kind, RuntimeError)
        assert not issubclass(kind, errors.ReloadNeededError)
    assert issubclass(errors.GivenUpWarning, UserWarning)
