"""Linear algebra on one thread: everybody's setting comes back, whoever leaves first."""

import os
import threading

import pytest
from threadpoolctl import ThreadpoolController

from discreet import _blas
from discreet._blas import one_thread


def threads() -> list[int]:
    import scipy.linalg  # noqa: F401, PLC0415

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    assert found
    return [library.num_threads for library in found]


@pytest.fixture(autouse=True)
def _two_threads() -> None:
    threads()
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def test_there_is_one_inside_and_afterwards_what_there_was() -> None:
    before = threads()
    with one_thread():
        assert set(threads()) == {1}
        with one_thread():
            assert set(threads()) == {1}
        assert set(threads()) == {1}
    assert threads() == before


def test_an_error_inside_restores_them_too() -> None:
    before = threads()
    with pytest.raises(ZeroDivisionError), one_thread():
        _ = 1 / 0
    assert threads() == before


def test_the_last_of_several_threads_restores_them() -> None:
    before, entered, leave = threads(), threading.Event(), threading.Event()

    def waits() -> None:
        with one_thread():
            entered.set()
            leave.wait()

    other = threading.Thread(target=waits)
    with one_thread():
        other.start()
        entered.wait()
    assert set(threads()) == {1}
    leave.set()
    other.join()
    assert threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_wait_for_a_lock_of_its_parent() -> None:
    _blas._limit.lock.acquire()
    try:
        child = os.fork()
        if child == 0:
            with one_thread():
                os._exit(0)
    finally:
        _blas._limit.lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
