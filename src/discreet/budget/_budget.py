"""A budget that several learners share, because they are about the same people.

Each is registered before it is used; one that would take the total beyond the budget is refused.
The rule is fixed when the budget is made, so a plan may change in view of what was shown. Nothing
here holds or sees a row. Proofs: docs/accounting.md.
"""

import json
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from discreet import _canonical as canonical
from discreet import _checks as checks
from discreet import _tables, accounting
from discreet.budget import _rounding as rounding
from discreet.budget._items import Item, Learner, Values, stated
from discreet.budget._rule import Rule
from discreet.errors import (
    BudgetExceededError,
    CorruptFileError,
    DiscreetError,
    FileVersionError,
    MissingFileError,
    ParameterError,
    StateExistsError,
    StoreError,
)
from discreet.mechanism import Mechanism
from discreet.privacy import Guarantee, Privacy
from discreet.release.ledger import Ledger

_FORMAT, _VERSION = "discreet-budget", 1
_HEAD = ("name", "counts as", "epsilon", "delta", "rounds of a person", "neighbours")
_ALTERED = "is none that to_json made, or was altered; restore it from a copy"


class Budget:
    """What several learners and private values may cost together, for anyone who is in all.

    Gaussian noise is counted exactly: squares of mu add up. For mechanisms without a mu (Wishart
    noise, perturbations of your own, a bare `Guarantee`) a share has to be set apart, in which
    their epsilons and deltas add up. A person may take part in as many rounds of each as that one
    states. Learners may run side by side, and may be chosen in view of what others showed. Safe for
    several threads.

    Args:
        epsilon: for everything together.
        delta: for everything together.
        neighbours: 'replacement' or 'add-remove', for everything together. A mechanism whose own
            promise is for 'add-remove' counts twice where the budget's is for 'replacement'.
        protects: 'rows', or 'rewards' alone, for everything together. Where it is 'rows', what
            protects rewards alone is refused; where it is 'rewards', both may share the budget.
        apart_epsilon: the part of epsilon set apart for mechanisms without a mu.
        apart_delta: the part of delta set apart for them.

    Examples:
        >>> import discreet
        >>> budget = discreet.Budget(epsilon=2, delta=1e-6)
        >>> problem = discreet.Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
        >>> privacy = discreet.Privacy(epsilon=1, delta=1e-7)
        >>> bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy, budget=budget)
        >>> budget.spent.epsilon <= 2
        True
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        neighbours: str = "replacement",
        protects: str = "rows",
        apart_epsilon: float = 0.0,
        apart_delta: float = 0.0,
    ) -> None:
        """Fix the rule; nothing is spent yet."""
        total = Privacy(epsilon=epsilon, delta=delta, neighbours=neighbours, protects=protects)
        self._rule = Rule(total, (apart_epsilon, apart_delta))
        self._items: tuple[Item, ...] = ()
        self._lock = threading.Lock()

    @property
    def epsilon(self) -> float:
        """The epsilon of everything together."""
        return self._rule.total.epsilon

    @property
    def delta(self) -> float:
        """The delta of everything together."""
        return self._rule.total.delta

    @property
    def neighbours(self) -> str:
        """The relation that the budget is for."""
        return self._rule.total.neighbours

    @property
    def protects(self) -> str:
        """What the budget is for: 'rows', or 'rewards' alone."""
        return self._rule.total.protects

    @property
    def items(self) -> tuple[Item, ...]:
        """What was registered, in order. Nothing is ever taken back: what was shown stays shown."""
        return self._items

    @property
    def guarantee(self) -> Guarantee:
        """What holds for everything that is registered, now or later, together."""
        rounds = sum(item.contributions_per_user for item in self._items)
        argument = (
            f"all that shares a budget (so far {len(self._items)}) has at most as many rounds "
            "of one person as it states; squares of mu add up, and epsilons and deltas of "
            "mechanisms without one"
        )
        total = replace(self._rule.total, contributions_per_user=max(1, rounds))
        promised = Guarantee.meeting(total, argument)
        return replace(promised, record="rows") if self.protects == "rows" else promised

    @property
    def spent(self) -> Guarantee:
        """What is registered so far costs, at the budget's delta: for a plan that ends here.

        If whether to go on is decided in view of what was shown, the promise is `guarantee`.
        """
        epsilon, delta = self._rule.cost(self._items)
        more = "" if self._items else "nothing is registered yet; "
        promised = self.guarantee
        return replace(promised, epsilon=epsilon, delta=delta, argument=more + promised.argument)

    @property
    def left(self) -> float:
        """The largest mu that one more Gaussian mechanism may have; 0 if there is no room."""
        return self._rule.left(self._items)

    @property
    def left_apart(self) -> tuple[float, float]:
        """The epsilon and the delta that one more mechanism without a mu may have."""
        return self._rule.left_apart(self._items)

    def privacy_for_next(
        self, *, delta: float | None = None, learners: int = 1, contributions_per_user: int = 1
    ) -> Privacy:
        """A target that one more learner may have, or each of several: the largest epsilon.

        For learners with Gaussian noise, exact or not; that is all variants but Wishart ones.

        Args:
            delta: of the target; if left out, what the budget has for Gaussian noise.
            learners: how many more there are to be, with this target each.
            contributions_per_user: in how many rounds of each one person may take part.

        Returns:
            The target.

        Raises:
            BudgetExceededError: Not even the smallest epsilon fits at this delta.
        """
        count = checks.count("learners", learners)
        chosen = self._rule.gaussian.delta if delta is None else checks.probability("delta", delta)
        room = self.left / accounting.upwards(math.sqrt(count)) * (1 - 1e-12)
        epsilon = rounding.largest_epsilon(room, chosen)
        if epsilon is None:
            raise BudgetExceededError(
                "budget",
                f"has mu {self.left:.3g} left, in which no learner fits at delta {chosen:.3g}; "
                "give a smaller delta, or make a larger budget for new people",
                left=self.left,
            )
        return Privacy(
            epsilon=epsilon,
            delta=chosen,
            neighbours=self.neighbours,
            contributions_per_user=contributions_per_user,
            protects=self.protects,
        )

    def spend(
        self,
        what: Learner | Values | Mechanism | Ledger | Guarantee,
        *,
        name: str | None = None,
    ) -> Item:
        """Register a mechanism, before anything that it shows is seen by anybody.

        A learner, its `Ledger` and itself loaded again are the same and count once. A new learner
        counts anew, also if it takes the place of one that was deleted. A `Mechanism` and a
        `Guarantee` have no identity and count each time.

        Args:
            what: a `LinUCB`, a `PrivateValues`, a `Mechanism`, a `Ledger` or a `Guarantee`.
            name: what to call it here; made up if left out.

        Returns:
            What was registered.

        Raises:
            BudgetExceededError: The total would be more than the budget. Nothing has changed; do
                not use what was refused.
            ParameterError: It promises nothing, or the name is taken.
        """
        return self._register(what, name)[0]

    @contextmanager
    def spending(
        self,
        what: Learner | Values | Mechanism | Ledger | Guarantee,
        *,
        name: str | None = None,
    ) -> Iterator[Item]:
        """`spend`, and then do something with it that may be refused, such as storing it.

        If the budget has no room, the block is not begun. If the block is refused, with a
        `DiscreetError` that is no `StoreError`, nothing was shown and nothing is spent. After
        anything else it stays spent.

        Args:
            what: as for `spend`.
            name: as for `spend`.

        Yields:
            What was registered.
        """
        item, new = self._register(what, name)
        try:
            yield item
        except StoreError:
            raise
        except DiscreetError:
            with self._lock:
                self._items = tuple(one for one in self._items if not (new and one is item))
            raise

    def _register(
        self, what: Learner | Values | Mechanism | Ledger | Guarantee, name: str | None
    ) -> tuple[Item, bool]:
        """What was registered, and whether that is new."""
        identity, guarantee, mu, trace, kind = stated(what)
        if guarantee.epsilon is None or guarantee.delta is None:
            raise ParameterError(
                "what", "promises no privacy, so no budget covers it; its guarantee says why"
            )
        with self._lock:
            known = [item for item in self._items if identity is not None and item.id == identity]
            item = Item(
                name=self._named(name, kind) if not known else known[0].name,
                id=identity,
                epsilon=guarantee.epsilon,
                delta=guarantee.delta,
                mu=mu,
                trace=trace,
                neighbours=guarantee.neighbours,
                contributions_per_user=guarantee.contributions_per_user,
                protects=guarantee.protects,
            )
            if known:
                if known[0] != item:
                    raise ParameterError(
                        "what", "has the id of another that is registered; one of them is forged"
                    )
                return known[0], False
            self._require_room(item)
            self._items = (*self._items, item)
        return item, True

    def _named(self, name: str | None, kind: str) -> str:
        taken = {item.name for item in self._items}
        if name is None:
            tries = (kind if at == 1 else f"{kind} {at}" for at in range(1, len(taken) + 2))
            return next(one for one in tries if one not in taken)
        if name in taken:
            raise ParameterError("name", "is taken in this budget; give another")
        return name

    def _require_room(self, item: Item) -> None:
        if not self._rule.covers(item):
            raise ParameterError(
                "what",
                "protects rewards alone, and this budget is for whole rows; give it a budget of "
                "its own kind, Budget(..., protects='rewards')",
            )
        after = (*self._items, item)
        if self._rule.fits(after) or self._rule.filled_by_one(after):
            return
        if self._rule.is_gaussian(item):
            mu, room = self._rule.mu_of(item), self.left
            advice = f"has mu {room:.6g} left and {item.name!r} needs {mu:.6g}"
            if mu <= room:
                advice = f"has no room left for the rounding of exact noise of {item.name!r}"
            fitting = rounding.largest_epsilon(room * (1 - 1e-12), item.delta)
            if fitting is not None:
                kind = "" if item.protects == "rows" else f", protects={item.protects!r}"
                advice += (
                    f"; Privacy(epsilon={rounding.floored(fitting)}, delta={item.delta:g}, "
                    f"neighbours={self.neighbours!r}{kind}) would fit"
                )
            raise BudgetExceededError("budget", f"{advice}. Do not use it", left=room)
        epsilon, delta = self._rule.pair_of(item)
        left = self.left_apart
        advice = (
            f"has ({left[0]:.6g}, {left[1]:.6g}) left for mechanisms without a mu and "
            f"{item.name!r} needs ({epsilon:.6g}, {delta:.6g})"
        )
        if self._rule.apart == (0.0, 0.0):
            advice += "; set a share apart with Budget(..., apart_epsilon=..., apart_delta=...)"
        raise BudgetExceededError("budget", f"{advice}. Do not use it", left=self.left)

    def to_json(self) -> dict[str, Any]:
        """The whole budget as plain JSON; `from_json` makes an equal one of it."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "protects": self.protects,
            "apart_epsilon": self._rule.apart[0],
            "apart_delta": self._rule.apart[1],
            "items": [asdict(item) for item in self._items],
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any] | str | bytes) -> Self:
        """The budget of an entry, with every item registered again in order.

        Args:
            entry: what `to_json` gives, or that as text.

        Returns:
            The budget.

        Raises:
            ParameterError: It is no such entry, or its items do not fit into it.
            FileVersionError: A newer release of discreet made it.
        """
        try:
            if isinstance(entry, str | bytes):
                data = entry.encode("utf-8") if isinstance(entry, str) else entry
                entry = canonical.parse(data)
            if not isinstance(entry, Mapping):
                raise TypeError("no object")
            known = dict(entry)
            form, version, items = (known.pop(key) for key in ("format", "version", "items"))
            if form != _FORMAT or type(version) is not int or not isinstance(items, list):
                raise ValueError("no budget")
            if version > _VERSION:
                raise FileVersionError(
                    "budget",
                    f"has format version {version} and this release reads up to {_VERSION}; "
                    "update discreet to open it",
                )
            if version != _VERSION or any(isinstance(one, bool) for one in known.values()):
                raise ValueError("no budget")
            self = cls(**known)
            self._restore([Item(**item) for item in items])
        except FileVersionError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError):
            raise ParameterError("budget", _ALTERED) from None
        return self

    def _restore(self, items: Sequence[Item]) -> None:
        names = [item.name for item in items]
        ids = [item.id for item in items if item.id is not None]
        if len(set(names)) < len(names) or len(set(ids)) < len(ids):
            raise ValueError("a name or an id is there twice")
        if not all(map(self._rule.covers, items)):
            raise ValueError("an item protects less than the budget")
        if not (self._rule.fits(items) or self._rule.filled_by_one(items)):
            raise ValueError("the items do not fit")
        self._items = tuple(items)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the budget to a file, in one step and onto the disk, before anything is shown.

        Let one process at a time spend a budget. A file that holds items which this budget does not
        know of is left alone.

        Args:
            path: the file, for instance beside the learners.

        Raises:
            StateExistsError: There is something else, or somebody else has spent from the budget.
            StoreError: It cannot be written.
        """
        place = Path(path)
        with self._lock:
            if place.exists():
                self._require_older(place)
            data = json.dumps(self.to_json(), allow_nan=False, indent=1).encode("ascii") + b"\n"
            try:
                _replace(place, data)
            except OSError as error:
                raise StoreError("path", f"cannot be written: {error.strerror or error}") from None

    def _require_older(self, place: Path) -> None:
        try:
            there = type(self).load(place)
        except (CorruptFileError, FileVersionError):
            raise StateExistsError(
                "path", "holds something else than this budget; choose another name"
            ) from None
        ours = self.to_json() | {"items": self.to_json()["items"][: len(there.items)]}
        if there.to_json() != ours:
            raise StateExistsError(
                "path", "holds a budget that others have spent from; load it and spend again"
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The budget in a file.

        Args:
            path: where `save` wrote it.

        Returns:
            The budget.

        Raises:
            MissingFileError: Nothing is there.
            CorruptFileError: What is there is no budget, or was altered.
            StoreError: It cannot be read.
        """
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            raise MissingFileError("path", "has no file; make a Budget and save it") from None
        except OSError as error:
            raise StoreError("path", f"cannot be read: {error.strerror or error}") from None
        try:
            return cls.from_json(data)
        except ParameterError:
            raise CorruptFileError("path", f"holds a budget that {_ALTERED}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Budget) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return (
            f"Budget(epsilon={self.epsilon:g}, delta={self.delta:g}, items={len(self._items)}, "
            f"left={self.left:.6g})"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """A line for each item: how it counts, and what it states itself."""
        rule, rows = self._rule, list[tuple[str, ...]]()
        for item in self._items:
            if rule.is_gaussian(item):
                counts = f"mu {rounding.ceiled(rule.mu_of(item))}"
            else:
                counts = "({}, {}) of the share set apart".format(
                    *map(rounding.ceiled, rule.pair_of(item))
                )
            doubled = ", counted twice" if rule.is_weaker(item) else ""
            rounds = str(item.contributions_per_user)
            stated = (f"{item.epsilon:g}", f"{item.delta:g}", rounds, item.neighbours + doubled)
            rows.append((item.name, counts, *stated))
        return rows

    def _foot(self) -> list[str]:
        epsilon, _ = self._rule.cost(self._items)
        said = (
            f"Spent: epsilon {rounding.ceiled(epsilon)} of {self.epsilon:g}, at delta "
            f"{self.delta:g}. Left: mu {rounding.floored(self.left)} of "
            f"{rounding.floored(self._rule.most_mu)}"
        )
        if self._rule.apart != (0.0, 0.0):
            rest = "({}, {})".format(*map(rounding.floored, self.left_apart))
            said += f", and {rest} for mechanisms without a mu"
        return [f"{said}.", str(self.guarantee)]

    def __str__(self) -> str:
        return "\n".join([_tables.as_text(_HEAD, self._rows()), *self._foot()])

    def _repr_html_(self) -> str:
        return _tables.as_html(_HEAD, self._rows(), notes=self._foot())


def _replace(path: Path, data: bytes) -> None:
    """Write a file in one step: after a crash there is the old one or the whole new one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        partial.unlink(missing_ok=True)
