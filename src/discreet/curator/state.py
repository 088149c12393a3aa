"""What a curator holds in memory, and the changes that can be made to it. Secret."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet import _checks as checks
from discreet.curator import rows, storage
from discreet.curator.exact import ExactSums
from discreet.curator.sums import NoisySums, PrefixSums
from discreet.curator.waiting import Waiting
from discreet.errors import HorizonReachedError
from discreet.mechanism import Mechanism
from discreet.mechanism import _codec as codec
from discreet.mechanism import _perturbations as perturbations
from discreet.mechanism.noise.sources import NoiseSource
from discreet.release import Release

F64 = NDArray[np.float64]

_FLOATING = "; noise is drawn and added in floating point, whose rounding this does not cover"


class State:
    """Sums of rows, and actions that wait to become rows.

    Every change can be written down as a record of plain JSON and be made again from it, with the
    same noise: `opened` and `again`, and so on. A change is made as a whole or not at all.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        sums: PrefixSums,
        waiting: Waiting,
        *,
        supplied: perturbations.Perturbations | None,
        on_violation: str,
    ) -> None:
        """Use `begin` or `resume` instead."""
        self.mechanism = mechanism
        self.sums = sums
        self.waiting = waiting
        self.supplied = supplied
        self.on_violation = rows.checked_choice(on_violation)

    @classmethod
    def begin(
        cls,
        mechanism: Mechanism,
        source: NoiseSource,
        *,
        max_pending: int,
        supplied: perturbations.Perturbations | None,
        on_violation: str,
    ) -> Self:
        """Before any round."""
        mechanism = _honest(mechanism, source)
        sums = _sums_of(mechanism).begin(mechanism, source)
        waiting = Waiting(max_pending)
        return cls(mechanism, sums, waiting, supplied=supplied, on_violation=on_violation)

    @classmethod
    def resume(
        cls,
        document: dict[str, Any],
        source: NoiseSource,
        supplied: perturbations.Perturbations | None,
    ) -> Self:
        """Continue from `document`; ValueError, TypeError or KeyError if it does not fit."""
        mechanism = _honest(codec.from_json(document["mechanism"]), source)
        state = document["state"]
        waiting = Waiting.resume(state, document["max_pending"], mechanism.setting.problem)
        done = checks.count("rows", state["rows"], least=0)
        if done > waiting.rounds - len(waiting) or waiting.rounds > mechanism.setting.horizon:
            raise ValueError("the counters do not fit together")
        sums = _sums_of(mechanism).resume(
            mechanism,
            source,
            rows=done,
            released=checks.count("released", state["released"], least=0),
            number=checks.count("releases", state["releases"], least=0),
            arrays={name: _array(part) for name, part in state["sums"].items()},
        )
        return cls(
            mechanism, sums, waiting, supplied=supplied, on_violation=document["on_violation"]
        )

    def document(self) -> dict[str, Any]:
        """All that a save file has to hold."""
        return {
            "mechanism": codec.to_json(self.mechanism),
            "supplied": self.supplied is not None,
            "on_violation": self.on_violation,
            "max_pending": self.waiting.most,
            "state": {
                **self.waiting.state(self.mechanism.setting.problem.dim),
                "rows": self.sums.rows,
                "released": self.sums.released,
                "releases": self.sums.number,
                "sums": {name: storage.encode(part) for name, part in self.sums.state().items()},
            },
        }

    def counters(self) -> tuple[int, int, int]:
        """Rounds, rows, and decisions that wait: every change moves one of them."""
        return self.waiting.rounds, self.sums.rows, len(self.waiting)

    @staticmethod
    def opened(decision: str, action: F64) -> dict[str, Any]:
        """The record of a decision."""
        return {"open": decision, "action": storage.encode(action)}

    @staticmethod
    def learned(decision: str, reward: float, fresh: NDArray[Any]) -> dict[str, Any]:
        """The record of a reward, with the noise that its row needs."""
        return {"learn": decision, "reward": reward, "noise": storage.encode(fresh)}

    @staticmethod
    def forgotten(decision: str) -> dict[str, Any]:
        """The record of a decision that was given up."""
        return {"forget": decision}

    def again(self, record: dict[str, Any]) -> None:
        """Make a change that was written down; ValueError, TypeError or KeyError if it cannot."""
        problem = self.mechanism.setting.problem
        if "open" in record:
            if self.waiting.rounds >= self.mechanism.setting.horizon:
                raise ValueError("more rounds than there are")
            action = storage.decode(record["action"])
            self.waiting.open_again(
                str(record["open"]), rows.bounded_actions(problem, action[None], "error")[0]
            )
        elif "learn" in record:
            fresh = _array(record["noise"])
            if not self.sums.fits(fresh):
                raise ValueError("noise of another shape")
            value = rows.bounded_reward(problem, record["reward"], "error")
            self.take_in(record["learn"], value, fresh)
        else:
            self.waiting.take(record["forget"])

    def take_in(self, decision: str, reward: float, fresh: NDArray[Any]) -> None:
        """A decision becomes a row. It waits no longer first, so nothing can count it twice."""
        action = self.waiting.take(decision)
        done = self.sums.rows
        try:
            self.sums.add(action, reward, fresh)
        except BaseException:
            if self.sums.rows == done:
                self.waiting.put_back(decision, action)
            raise

    def release(self) -> Release:
        """All that may be shown of it."""
        dim = self.mechanism.setting.problem.dim
        gram, moment = np.empty((dim, dim)), np.empty(dim)
        self.sums.unpack(self.mechanism.shift, gram, moment)
        if self.supplied is not None:
            extra = perturbations.checked(self.supplied, self.sums.rows + 1, dim)
            gram += extra[0]
            moment += extra[1]
        return Release(
            number=self.sums.number,
            rows=self.sums.released,
            gram=gram,
            moment=moment,
            mechanism=self.mechanism,
        )

    def require_a_round(self) -> None:
        """Refuse to play more rounds than the guarantee covers."""
        horizon = self.mechanism.setting.horizon
        if self.waiting.rounds >= horizon:
            raise HorizonReachedError(
                "horizon",
                f"all {horizon} rounds have been played; the guarantee covers no more, so start a "
                "new learner with a longer horizon",
            )


def _array(entry: dict[str, Any]) -> NDArray[Any]:
    """An array of whichever kind it says; whether that fits is seen later."""
    kinds = [name for name in entry if name != "shape"]
    return storage.decode(entry, kinds[0])


def _honest(mechanism: Mechanism, source: NoiseSource) -> Mechanism:
    """Withdraw the promise if the noise could be repeated; say if rounding is not covered."""
    guarantee = mechanism.guarantee
    if mechanism.noise is None or not guarantee.private:
        return mechanism
    if not source.secret:
        reason = "its noise comes from a seed and can be repeated"
        return replace(mechanism, guarantee=guarantee.voided(reason))
    if mechanism.grid is not None or guarantee.argument.endswith(_FLOATING):
        return mechanism
    argument = guarantee.argument + _FLOATING
    return replace(mechanism, guarantee=replace(guarantee, argument=argument))


def _sums_of(mechanism: Mechanism) -> type[PrefixSums]:
    return NoisySums if mechanism.grid is None else ExactSums
