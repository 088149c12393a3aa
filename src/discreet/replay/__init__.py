"""A log of decisions, replayed: a private warm start, and what its policy is worth on the rest.

`Log` says where the log is and what its columns mean. `replay` learns from one part of it under a
privacy target, and estimates on the other part what the learned policy, the same without privacy,
uniform choices, the best fixed action and the logged choices are worth. docs/replay.md has what is
assumed, and for whose eyes each number is.

`_table` reads files, `_log` makes rounds of them, `_parts` says which part a row is in, `_policies`
has what is compared, and `_replay` does the work. `_result` is what it shows.
"""

from discreet.replay._log import Log
from discreet.replay._replay import replay
from discreet.replay._result import Replay

__all__ = ["Log", "Replay", "replay"]
