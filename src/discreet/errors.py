"""Everything that discreet refuses, as one small family of exceptions.

Each names the parameter at fault in ``parameter`` and says in ``advice`` what to do about it. None
of them carries a row, a reward or a number computed from one. After any of them the object that
raised is as it was before the call.
"""

__all__ = [
    "BackendError",
    "BrokenLedgerError",
    "BudgetExceededError",
    "CellError",
    "ClientError",
    "CorruptFileError",
    "DecisionClosedError",
    "DiscreetError",
    "EmptyDecisionSetError",
    "FileVersionError",
    "ForkedStateError",
    "GivenUpWarning",
    "HorizonReachedError",
    "MissingFileError",
    "NotFiniteError",
    "OutOfBoundsError",
    "ParameterError",
    "ReadOnlyError",
    "ReentrantCallError",
    "ReloadNeededError",
    "RewoundStateError",
    "RunFolderError",
    "SecondWriterError",
    "ShapeError",
    "StateExistsError",
    "StateFileError",
    "StateInUseError",
    "StoreError",
    "UninformedWarning",
    "UnknownDecisionError",
    "WrongProcessError",
]


class DiscreetError(Exception):
    """Base of all errors that discreet raises on purpose.

    ``type(error)(error.parameter, error.advice)`` makes an equal error, to raise in another thread.
    Errors can be copied and pickled.

    Attributes:
        parameter: What is at fault: an argument, a column, a file.
        advice: What is wrong with it, and what to do.

    Examples:
        >>> import discreet
        >>> try:
        ...     discreet.Privacy(epsilon=0, delta=1e-6)
        ... except discreet.DiscreetError as error:
        ...     error.parameter
        'epsilon'
    """

    def __init__(self, parameter: str, advice: str) -> None:
        """Name the parameter at fault and say what to do about it."""
        super().__init__(parameter, advice)
        self.parameter = parameter
        self.advice = advice

    def __str__(self) -> str:
        """Give the one line that a user reads."""
        return f"{self.parameter}: {self.advice}"


class ParameterError(DiscreetError, ValueError):
    """A setting is outside its range, or two settings contradict each other."""


class ShapeError(DiscreetError, ValueError):
    """An array has the wrong shape or holds something other than numbers."""


class EmptyDecisionSetError(ShapeError):
    """A decision set without a single action."""


class NotFiniteError(DiscreetError, ValueError):
    """NaN or infinity where a finite number is needed."""


class OutOfBoundsError(DiscreetError, ValueError):
    """A row or a reward outside the bounds that the problem states."""


class HorizonReachedError(DiscreetError, RuntimeError):
    """The learner has played all the rounds that its guarantee covers."""


class UnknownDecisionError(DiscreetError, LookupError):
    """A reward for a decision that this learner never made."""


class DecisionClosedError(DiscreetError, LookupError):
    """A second reward for one decision, or a reward for one that was given up."""


class WrongProcessError(DiscreetError, RuntimeError):
    """A learner used in a process other than its own: a fork would share its noise."""


class StateFileError(DiscreetError, ValueError):
    """A stored learner that cannot be used."""


class CorruptFileError(StateFileError):
    """A stored learner that was truncated or altered, or never was one."""


class FileVersionError(StateFileError):
    """A stored learner in a format version that this release does not read."""


class MissingFileError(StateFileError):
    """A stored learner without one of its files."""


class StateExistsError(StateFileError):
    """A place where a learner is stored already, or where files of one are left."""


class StateInUseError(StateFileError):
    """A stored learner that somebody has open already."""


class BrokenLedgerError(CorruptFileError):
    """A ledger that was altered, in ``line``, or never was one."""

    def __init__(self, parameter: str, advice: str, *, line: int = 0) -> None:
        """Name the first line at fault, counted from 1; 0 where no line can be named."""
        super().__init__(parameter, advice)
        self.line = line


class RewoundStateError(StateFileError):
    """A state older than what was released from it."""


class ForkedStateError(StateFileError):
    """Two continuations of one state: release ``number`` was made twice, with other contents."""

    def __init__(self, parameter: str, advice: str, *, number: int = 0) -> None:
        """Name the first release that differs, counted from 1; 0 where none can be named."""
        super().__init__(parameter, advice)
        self.number = number


class ReloadNeededError(DiscreetError, RuntimeError):
    """A stored learner that may have lost step with its files, or was closed."""


class SecondWriterError(ReloadNeededError):
    """A stored learner that somebody else has continued."""


class StoreError(DiscreetError, RuntimeError):
    """A store that cannot be read or written now: a full disk, a database that does not answer."""


class ReadOnlyError(DiscreetError, RuntimeError):
    """A change that was asked of a view, which only looks at a stored learner."""


class ReentrantCallError(DiscreetError, RuntimeError):
    """A call into a learner by a thread that is inside another call of it.

    This happens in a signal handler or a finalizer that uses the learner.
    """


class RunFolderError(DiscreetError, ValueError):
    """An output folder that holds something else, or that another process is writing to."""


class BackendError(DiscreetError, RuntimeError):
    """Workers that cannot be had: a missing extra, a cluster that does not answer."""


class CellError(DiscreetError, RuntimeError):
    """A cell of an experiment that fails, or whose worker dies again and again."""


class BudgetExceededError(DiscreetError, ValueError):
    """A mechanism that would cost more, together with others, than their budget has left.

    ``left`` is the largest mu that one more Gaussian mechanism may have.
    """

    def __init__(self, parameter: str, advice: str, *, left: float = 0.0) -> None:
        """Say how much is left."""
        super().__init__(parameter, advice)
        self.left = left


class ClientError(DiscreetError, RuntimeError):
    """A service that refused a call of `discreet.client.Client`, or could not be reached.

    Attributes:
        status: the HTTP status; 0 if there was no answer.
        code: what went wrong, for programs, such as "BanditNotFound" or "Unreachable".
        message: what went wrong, for people; the same as ``advice``.
    """

    def __init__(self, parameter: str, advice: str, *, status: int = 0, code: str = "") -> None:
        """Name the call that failed, and say what the service answered."""
        super().__init__(parameter, advice)
        self.status = status
        self.code = code

    @property
    def message(self) -> str:
        """What went wrong, for people."""
        return self.advice


class GivenUpWarning(UserWarning):
    """Decisions were given up because too many wait for a reward."""


class UninformedWarning(UserWarning):
    """A learner will hardly choose better than chance; `LinUCB.diagnosis` says why."""
