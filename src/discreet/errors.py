"""Everything that discreet refuses, as one small family of exceptions.

Each names the parameter at fault in ``parameter`` and says in its message what to do. None of
them carries a row, a reward or a number computed from one. After any of them the object that
raised is as it was before the call.
"""


class DiscreetError(Exception):
    """Base of all errors that discreet raises on purpose."""

    def __init__(self, parameter: str, advice: str) -> None:
        """Name the parameter at fault and say what to do about it."""
        super().__init__(f"{parameter}: {advice}")
        self.parameter = parameter
        self.advice = advice


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
    """A save file that cannot be used."""


class CorruptFileError(StateFileError):
    """A save file that was truncated, altered, or never was one."""


class FileVersionError(StateFileError):
    """A save file in a format version that this release does not read."""


class MissingFileError(StateFileError):
    """A kept learner without one of its files."""


class StateExistsError(StateFileError):
    """A place where a learner is kept already, or where files of one are left."""


class StateInUseError(StateFileError):
    """A kept learner that somebody has open already."""


class BrokenLedgerError(CorruptFileError):
    """A ledger that was altered, in ``line``, or never was one."""

    def __init__(self, parameter: str, advice: str, *, line: int) -> None:
        """Name the first line at fault, counted from 1."""
        super().__init__(parameter, advice)
        self.line = line


class RewoundStateError(StateFileError):
    """A state older than what was released from it."""


class ForkedStateError(StateFileError):
    """Two continuations of one state: release ``number`` was made twice, with other contents."""

    def __init__(self, parameter: str, advice: str, *, number: int) -> None:
        """Name the first release that differs."""
        super().__init__(parameter, advice)
        self.number = number


class ReloadNeededError(DiscreetError, RuntimeError):
    """A kept learner that may have lost step with its files, or was closed."""


class RunFolderError(DiscreetError, ValueError):
    """An output folder that holds something else, or that another process is writing to."""


class BackendError(DiscreetError, RuntimeError):
    """Workers that cannot be had: a missing extra, a cluster that does not answer."""


class CellError(DiscreetError, RuntimeError):
    """A cell of an experiment that fails, or whose worker dies again and again."""


class StoreError(DiscreetError, RuntimeError):
    """A store that cannot be read or written now: a full disk, a database that does not answer."""


class SecondWriterError(ReloadNeededError):
    """A stored learner that somebody else has continued."""


class ReentrantCallError(DiscreetError, RuntimeError):
    """A call by a thread that is inside another one: from a signal handler or a finalizer."""


class GivenUpWarning(UserWarning):
    """Decisions were given up because too many wait for a reward."""
