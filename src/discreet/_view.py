"""`View`: a stored learner to look at, also while another process learns. It changes nothing."""

import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.curator import _reading, rows
from discreet.errors import ForkedStateError, ParameterError, ReadOnlyError, RewoundStateError
from discreet.learner import Place, _rule
from discreet.mechanism import Mechanism
from discreet.privacy import Guarantee
from discreet.problem import Problem
from discreet.release import Release, policies
from discreet.release._card import privacy_card
from discreet.release._diagnosis import Diagnosis, diagnosis
from discreet.release._offered import Some, offered, picked
from discreet.release.confidence import Region
from discreet.release.ledger import Ledger
from discreet.release.policies import Choice
from discreet.release.posterior import Estimate, Posterior

_F64 = NDArray[np.float64]


class View:
    """What a stored learner has shown: its last release, its ledger, and what it would choose.

    `open_read_only` makes one. It holds public data only, and no file or lock. It shows the
    learner as it was when it was opened or last refreshed; `refresh` takes a later release. Calls
    from several threads are safe.
    """

    def __init__(self, place: Place, shown: _reading.Shown, policy: policies.Policy) -> None:
        """Use `open_read_only`."""
        self._place = place
        self._shown = shown
        self._policy = policy
        self._refreshing = threading.Lock()

    @property
    def problem(self) -> Problem:
        """The stated bounds."""
        return self.mechanism.setting.problem

    @property
    def mechanism(self) -> Mechanism:
        """The noise, its bounds and its setting."""
        return self.release.mechanism

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about everything the learner shows; prints as a sentence."""
        return self.mechanism.guarantee

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

    @property
    def confidence(self) -> Region:
        """The confidence set that the release is proven to support."""
        return self.release.confidence

    @property
    def posterior(self) -> Posterior:
        """What the release says about the parameter: a model, and no theorem."""
        return self.release.posterior

    @property
    def diagnosis(self) -> Diagnosis:
        """How much the release says, in words and numbers."""
        return diagnosis(self.release)

    def estimate(self, actions: ArrayLike, *, level: float = 0.95) -> Estimate:
        """What is thought of actions' mean rewards, as by `LinUCB.estimate`.

        Args:
            actions: shape (K, d).
            level: the probability that the posterior gives an interval.

        Returns:
            ``estimate``, ``low`` and ``high``, an entry for each action.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: no decision set could be like this.
        """
        return self.release.cautious.estimate(self._bounded(actions), level=level)

    def choose(
        self, actions: ArrayLike, *, among: Some | None = None, exclude: Some | None = None
    ) -> Choice:
        """Pick an action as the learner would. There is no decision, so nothing can be learned.

        Args:
            actions: the decision set, shape (K, d), an action a row.
            among: the only actions that may be chosen, as for `LinUCB.choose`.
            exclude: actions that may not be chosen.

        Returns:
            The place of an action in ``actions``, and how probable it was.

        Raises:
            ShapeError, NotFiniteError, OutOfBoundsError: the decision set cannot be used.
            EmptyDecisionSetError: nothing is left to choose.
        """
        sets = self._bounded(actions)
        return picked(self._policy, self.release, sets, offered(len(sets), among, exclude))

    def probabilities(
        self, actions: ArrayLike, *, among: Some | None = None, exclude: Some | None = None
    ) -> _F64:
        """How probable each action is, exactly.

        Args:
            actions: as for `choose`, and so are the others.
            among: the only actions that may be chosen.
            exclude: actions that may not be chosen.

        Returns:
            Shape (K,); 0 for actions that are not on offer.

        Raises:
            ParameterError: the policy does not say.
        """
        rule = getattr(self._policy, "probabilities", None)
        if rule is None:
            raise ParameterError(
                "policy", "does not say how probable its choices are; open with PosteriorUCB() say"
            )
        sets = self._bounded(actions)
        places = offered(len(sets), among, exclude)
        found = np.zeros(len(sets))
        chosen = np.arange(len(sets)) if places is None else places
        found[chosen] = rule(self.release, sets[chosen])
        return found

    def rank(
        self, actions: ArrayLike, *, among: Some | None = None, exclude: Some | None = None
    ) -> list[Choice]:
        """All actions on offer, the most probable first; of equals the one with the higher mean.

        Args:
            actions: as for `choose`, and so are the others.
            among: the only actions that may be chosen.
            exclude: actions that may not be chosen.

        Returns:
            Their places in ``actions``, with their probabilities.
        """
        sets = self._bounded(actions)
        places = offered(len(sets), among, exclude)
        found = self.probabilities(sets, among=among, exclude=exclude)
        means = sets @ _centre(self.release)
        order = sorted(
            range(len(sets)) if places is None else places.tolist(),
            key=lambda place: (-found[place], -means[place], place),
        )
        return [Choice(place, found.item(place)) for place in order]

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
                    "learner was restored from before that. Restore the newest state and ledger",
                )
            if after.release.number == before.release.number:
                return False
            self._shown = after
            return True

    def learn(self, *_: object, **__: object) -> NoReturn:
        """Refused, and so is everything else that changes a learner."""
        raise ReadOnlyError(
            "learner",
            "is open for reading only; give rewards to the process that has it open, or use "
            "discreet.load if there is none",
        )

    learn_many = observe = forget = save = choose_many = learn

    def _bounded(self, actions: ArrayLike) -> _F64:
        choice = rows.checked_choice(self._shown.document["on_violation"])
        found = rows.bounded_actions(self.problem, actions, choice)
        found.setflags(write=False)
        return found

    def __repr__(self) -> str:
        return (
            f"View(variant={self.mechanism.variant!r}, dim={self.problem.dim}, "
            f"release={self.release.number}, rows={self.release.rows})"
        )


def _centre(release: Release) -> _F64:
    """The parameter that the release points at, by whatever it supports."""
    try:
        return release.posterior.centre
    except ParameterError:  # the law of the noise is another
        return release.confidence.centre


def open_read_only(
    path: Place, *, policy: policies.Policy | None = None, ledger_head: str | None = None
) -> View:
    """Look at the learner that is stored at a path, whether or not another process has it open.

    Nothing is locked, made or written, so it works on files and in folders that may only be read.
    What is shown is the last release that is in the learner's ledger; one that is stored and not
    yet in the ledger is not. The files hold raw data and have to be readable; the view does not
    keep any of it.

    Args:
        path: where `LinUCB.save` stored the learner: a file, or a PostgreSQL database.
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
    """
    if policy is not None and not isinstance(policy, policies.Policy):
        raise ParameterError("policy", "is not one; give PosteriorUCB(), UCB() or Thompson()")
    shown = _reading.read(path, known_head=ledger_head)
    place = path if isinstance(path, str) and "://" in path else Path(path).absolute()
    return View(place, shown, _rule(shown.document, policy))
