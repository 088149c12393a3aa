"""`View`: a stored learner to look at, also while another process learns. It changes nothing."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.curator import _reading, bounds
from discreet.errors import ForkedStateError, ParameterError, ReadOnlyError, RewoundStateError
from discreet.features import FeatureMap
from discreet.learner import Place, _rule
from discreet.release import Release, policies
from discreet.release._card import privacy_card
from discreet.release._ranker import Deciding, Offer, fitting, require_policy, rows_of
from discreet.release.ledger import Ledger

_F64 = NDArray[np.float64]


class View(Deciding):
    """What a stored learner has shown: its last release, its ledger, and what it would choose.

    `open_read_only` makes one. It holds public data only, and no file or lock. It shows the
    learner as it was when it was opened or last refreshed; `refresh` takes a later release. Calls
    from several threads are safe.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy, path="one")
        >>> view = discreet.open_read_only("one")
        >>> [choice.probability for choice in view.rank([[1.0, 0.0], [0.0, 1.0]])]
        [0.5, 0.5]
        >>> bandit.close()
    """

    def __init__(
        self,
        place: Place,
        shown: _reading.Shown,
        policy: policies.Policy,
        features: FeatureMap | None,
    ) -> None:
        """Use `open_read_only`."""
        self._place = place
        self._shown = shown
        self._policy = policy
        self._features = fitting(features, shown.release.mechanism.setting.problem)
        self._refreshing = threading.Lock()

    @property
    def policy(self) -> policies.Policy:
        """How a release becomes a choice."""
        return self._policy

    @property
    def release(self) -> Release:
        """The last release, which is in the ledger; the same object until there is a later one."""
        return self._shown.release

    @property
    def ledger(self) -> Ledger:
        """Every release up to this one."""
        return self._shown.ledger

    @property
    def card(self) -> dict[str, Any]:
        """The privacy card, with the number of releases and rows so far."""
        release, ledger, _ = self._shown
        return privacy_card(
            release.mechanism, learner=ledger.learner, releases=release.number, rows=release.rows
        )

    def refresh(self) -> bool:
        """Look again, and take a later release if there is one.

        Returns:
            Whether there was one.

        Raises:
            RewoundStateError: What is stored is older than this view, or another continuation, or
                another learner's. The view stays as it was.
            StateFileError, StoreError: It cannot be read.
        """
        with self._refreshing:
            before, after = self._shown, _reading.read(self._place)
            try:
                known = before.ledger.agrees(after.ledger)
            except (ParameterError, ForkedStateError):
                raise RewoundStateError(
                    "path",
                    "holds another learner than this view has shown, or another continuation of "
                    "it; find out which one is right, and open that one anew",
                ) from None
            if known < before.release.number:
                raise RewoundStateError(
                    "path",
                    f"holds {known} releases and this view has shown {before.release.number}: the "
                    "learner was restored from an older state. Restore the newest state and ledger",
                )
            if after.release.number == before.release.number:
                return False
            self._shown = after
            return True

    def learn(self, *_: object, **__: object) -> NoReturn:
        """Refused, and so is everything else that changes a learner.

        Raises:
            ReadOnlyError: always.
        """
        raise ReadOnlyError(
            "learner",
            "is open for reading only; give rewards to the process that has it open, or use "
            "discreet.load if there is none",
        )

    learn_many = observe = forget = forget_subject = save = choose_many = learn

    def _rows(self, actions: Offer, context: Mapping[str, Any] | None) -> _F64:
        on_violation = bounds.checked_on_violation(self._shown.document["on_violation"])
        given = rows_of(actions, context, self._features)
        found = bounds.bounded_actions(self.problem, given, on_violation)
        found.setflags(write=False)
        return found

    def __repr__(self) -> str:
        return (
            f"View(variant={self.mechanism.variant!r}, dim={self.problem.dim}, "
            f"release={self.release.number}, rows={self.release.rows})"
        )


def open_read_only(
    path: Place,
    *,
    features: FeatureMap | None = None,
    policy: policies.Policy | None = None,
    ledger_head: str | None = None,
) -> View:
    """Look at the learner that is stored at a path, whether or not another process has it open.

    Nothing is locked, made or written, so it works on files and in folders that may only be read.
    What is shown is the last release that is in the learner's ledger; one that is stored and not
    yet in the ledger is not. The files hold raw data and have to be readable; the view does not
    keep any of it.

    Args:
        path: where `LinUCB.save` stored the learner: a file, or a PostgreSQL database.
        features: the learner's feature map, if people and actions come as dictionaries or frames.
        policy: to use instead of the stored one; a policy of your own must be given again.
        ledger_head: the ``ledger.head`` of an earlier moment, if you kept it elsewhere. A learner
            that was restored together with its ledger from before that moment is refused then.

    Returns:
        The view.

    Raises:
        MissingFileError: nothing is stored there, or one of its files is missing.
        RewoundStateError: the state is older than what was released from it.
        StateFileError: what is stored is damaged, or of a newer version.
        StoreError: it cannot be read.
        ParameterError: a policy or a feature map does not fit.

    Examples:
        >>> import discreet
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-6)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy, path="one")
        >>> discreet.open_read_only("one").release.number  # while the learner is open
        0
        >>> bandit.close()
    """
    require_policy(policy)
    shown = _reading.read(path, known_head=ledger_head)
    place = path if isinstance(path, str) and "://" in path else Path(path).absolute()
    rule = policies.settled(_rule(shown.document, policy), shown.release.mechanism)
    return View(place, shown, rule, features)
