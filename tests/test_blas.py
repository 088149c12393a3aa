"""Linear algebra on one thread, and afterwards on as many as before."""

import os
import threading
from collections.abc import Iterator

import pytest
import scipy.linalg  # noqa: F401  # its library is one of them
from threadpoolctl import ThreadpoolController

from discreet._blas import one_thread


def threads() -> list[int]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    assert found
    return [library.num_threads for library in found]


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def test_there_is_one_inside_and_afterwards_what_there_was() -> None:
    assert set(threads()) == {2}
    with one_thread():
        assert set(threads()) == {1}
        with one_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert set(threads()) == {2}


def test_an_error_inside_restores_them_too() -> None:
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert set(threads()) == {2}


def test_every_thread_has_one_while_it_is_inside() -> None:
    entered, leave, seen = threading.Event(), threading.Event(), []

    def waits() -> None:
        with one_thread():
            seen.append(set(threads()))
            entered.set()
            leave.wait()

    other = threading.Thread(target=waits)
    with one_thread():
        other.start()
        entered.wait()
        leave.set()
        other.join()
        assert seen == [{1}]
        assert set(threads()) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_can_use_it() -> None:
    with one_thread():
        child = os.fork()
        if child == 0:
            with one_thread():
                os._exit(0 if set(threads()) == {1} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
