"""The privacy card of a learner for somebody who has to judge it: facts, a page, and JSON.

Made of a ledger and nothing else, so everything here is public. A card is a stranger's text: what
it says is checked before it is used, and escaped by the page.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from discreet.budget._items import stated
from discreet.budget._rounding import ceiled
from discreet.errors import ParameterError
from discreet.privacy import Guarantee
from discreet.release._card import FORMAT
from discreet.release.ledger import Entry, Ledger
from discreet.report._page import (
    Block,
    Commands,
    Drawings,
    Facts,
    Folded,
    Page,
    PageSection,
    Points,
    Prose,
    Table,
)
from discreet.report._tradeoff import LEVELS, Meaning, percent
from discreet.version import __version__

_FEW = 12  # releases that are shown without being folded
_ENDS = 3  # releases at either end of a ledger that is folded
_MOST = 20_000  # releases on one page
_FINE = 1e-9  # traces below this show in no digit of the page

_OWN_ACTION = (
    "A person's own action, from whoever sees that action: it depends on the person's own data on "
    "purpose."
)
_PUBLIC_ACTIONS = (
    "What people could choose from, and which actions were taken: both are public, and releases "
    "hold the sums of actions without noise. So it can be seen which rounds were left out, because "
    "somebody came too often or was forgotten. Rewards alone are protected."
)

_NOISES = {
    "discrete-gaussian": "Gaussian on whole numbers (the discrete Gaussian)",
    "gaussian": "Gaussian, in floating point",
    "wishart": "Wishart, in floating point",
}


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is known of a learner from its ledger.

    Attributes:
        ledger: the ledger, checked.
        guarantee: what the card promises.
        mu: that of Gaussian differential privacy, where the noise is fine enough to show it.
        name: what the ledger is called in commands: a file's name, without its folder.
    """

    ledger: Ledger
    guarantee: Guarantee
    mu: float | None
    name: str

    @classmethod
    def of(cls, ledger: Ledger, *, name: str) -> "Card":
        """Read the card of a ledger.

        Args:
            ledger: of any learner.
            name: what to call it in commands.

        Returns:
            The card.

        Raises:
            ParameterError: The ledger holds no privacy card of discreet's.
        """
        card = ledger.card
        kinds: dict[str, type | tuple[type, ...]] = {
            "argument": str,
            "neighbours": str,
            "record": str,
            "joint": bool,
            "contributions_per_user": int,
            "variant": str,
            "text": str,
            "bounds": dict,
            "noise": dict,
            "horizon": int,
            "most_releases": int,
        }
        whole = all(isinstance(card.get(key), kind) for key, kind in kinds.items())
        pair = (card.get("epsilon"), card.get("delta"))
        numbers = pair == (None, None) or all(
            isinstance(one, float | int) and not isinstance(one, bool) and one >= 0 for one in pair
        )
        if card.get("format") != FORMAT or not whole or not numbers:
            raise ParameterError("file", "holds a ledger without a privacy card of discreet's")
        guarantee = Guarantee(**{key: card[key] for key in Guarantee.__dataclass_fields__})
        try:
            known = stated(ledger)
        except ParameterError:  # noise or a strategy of the caller's own
            return cls(ledger=ledger, guarantee=guarantee, mu=None, name=name)
        fine = isinstance(known.mu, float) and 0 < known.mu < math.inf and known.trace <= _FINE
        return cls(ledger=ledger, guarantee=guarantee, mu=known.mu if fine else None, name=name)

    @property
    def meaning(self) -> Meaning | None:
        """What the promise means; None if there is none."""
        epsilon, delta = self.guarantee.epsilon, self.guarantee.delta
        if epsilon is None or delta is None:
            return None
        return Meaning(epsilon=float(epsilon), delta=float(delta), mu=self.mu)

    def facts(self) -> list[tuple[str, str]]:
        """The promise, and how much was released: for a terminal and for the head of a page."""
        found = [("learner", self.ledger.learner)]
        if self.meaning is not None:
            found += [
                ("epsilon", f"{self.guarantee.epsilon:.12g}"),
                ("delta", f"{self.guarantee.delta:.12g}"),
            ]
            found += [] if self.mu is None else [("mu", ceiled(self.mu))]
        memory = self.ledger.card.get("memory")
        if isinstance(memory, int):
            found.append(("memory", f"{memory:,} rows"))
        found += [
            ("releases", f"{len(self.ledger):,}"),
            ("rows in the last release", f"{self.ledger.rows:,}"),
            ("head of the ledger", self.ledger.head),
        ]
        return found

    def sentences(self) -> list[str]:
        """What the numbers mean, one sentence each."""
        meaning = self.meaning
        if meaning is None:
            return [str(self.guarantee)]
        factor = "more than any number" if math.isinf(meaning.factor) else ceiled(meaning.factor)
        shown = "others see" if self.guarantee.joint else "is shown"
        worlds, guess = _worlds(self.guarantee)
        known = "everything about everybody else"
        if self.guarantee.protects == "rewards":
            known += ", and this person's decision sets and actions"
        said = [
            (
                f"Whatever {shown}, now or later, was at most {factor} times as probable with "
                f"{worlds}, up to a probability of {meaning.delta:.12g}."
            ),
            (
                f"Somebody who knows {known}, and has to guess {guess}, is right in at most "
                f"{percent(meaning.right)} of cases. A blind guess is right in 50%."
            ),
        ]
        if self.mu is not None:
            said.append(
                "Precisely: the two are as hard to tell apart as two bell curves of width 1 that "
                f"are {ceiled(self.mu)} apart, or harder (mu, Gaussian differential privacy)."
            )
        return said

    def limits(self) -> list[str]:
        """What is not protected."""
        noise, rounds = self.ledger.card["noise"], self.guarantee.contributions_per_user
        said = [
            "What is true of people in general: it is learned with or without any one person.",
            _PUBLIC_ACTIONS if self.guarantee.protects == "rewards" else _OWN_ACTION,
            (
                f"A person who takes part in more rounds than {rounds:,}. That nobody does is up "
                "to whoever runs the learner."
            ),
            (
                "The memory, the database and the backups of the learner. They hold raw data; "
                "whoever runs it is trusted."
            ),
            (
                "People who are in other learners as well: costs add up, unless a common budget "
                "was kept."
            ),
            (
                "Anything else that is published of the same data, such as logs, rewards or exact "
                "evaluations."
            ),
            "When rewards arrive, and how many rows there are. Both are taken to be public.",
            "Two copies of one state that are both continued. Comparing ledgers finds it out.",
            (
                "What is told by bounds that were chosen by looking at private data: they are on "
                "this page."
            ),
        ]
        if not noise.get("exact"):
            said.append(
                "Low bits: this noise is floating point, whose rounding can betray what it hides."
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """The card, up to date, with what it means and what it does not."""
        counts = {
            "learner": self.ledger.learner,
            "releases": len(self.ledger),
            "rows": self.ledger.rows,
        }
        meaning = self.meaning
        return {
            "card": {**self.ledger.card, **counts},
            "head": self.ledger.head,
            "torn_bytes": self.ledger.torn,
            "meaning": None if meaning is None else meaning.to_json(),
            "in_words": self.sentences(),
            "not_protected": self.limits(),
        }

    def page(self) -> Page:
        """The whole page."""
        lead = "Nothing is promised about the privacy of people in this learner."
        if self.meaning is not None:
            lead = (
                "What a learning system promises to the people whose data it learns from, what it "
                "has shown so far, and how to check both. Everything on this page is public."
            )
        return Page(
            title="Privacy card",
            lead=(Prose(lead), Facts(tuple(self.facts()), compact=True)),
            sections=(
                *([] if self.meaning is None else [self._who(), self._how_much(self.meaning)]),
                *([] if self.meaning is not None else [self._nothing()]),
                PageSection(
                    heading="What is not protected", blocks=(Points(tuple(self.limits())),)
                ),
                self._released(),
                self._means(),
                self._checks(),
            ),
            provenance=Facts(
                (
                    ("made by", f"discreet {__version__}, from the ledger alone"),
                    ("learner made by", f"discreet {self.ledger.card.get('discreet')}"),
                    ("make it again", f"discreet card {self.name} --html OUT"),
                )
            ),
        )

    def _nothing(self) -> PageSection:
        return PageSection(heading="No promise", blocks=(Prose(str(self.guarantee)),))

    def _who(self) -> PageSection:
        promise = self.guarantee
        rounds = promise.contributions_per_user
        times = "one round" if rounds == 1 else f"up to {rounds:,} rounds"
        change = _change(promise, times)
        against = (
            "Everybody but that person and whoever runs the learner: all other people together, "
            "even if they compare notes, know everything else, choose their own data to find "
            "something out, and have all the time and computers they want."
        )
        if not promise.joint:
            against = "Everybody but whoever runs it, that person included."
        return PageSection(
            heading="Who is protected, and against whom",
            blocks=(
                Facts(
                    (
                        ("who", f"Every single person who takes part in {times}."),
                        ("against whom", against),
                        ("what is compared", f"Two worlds that differ in one person: {change}."),
                        (
                            "who is trusted",
                            (
                                "The process that runs the learner, and whoever can read its "
                                "memory and its files."
                            ),
                        ),
                    )
                ),
            ),
        )

    def _how_much(self, meaning: Meaning) -> PageSection:
        rows = tuple((percent(level), percent(meaning.hits(level))) for level in LEVELS)
        caption = (
            "The most that any attack can do. Across: how often it cries wolf when the data is the "
            "other one; up: how often it is right when the data is the one it looks for. Without "
            "any privacy the corner at the top left could be reached. Attacks are below the curve."
        )
        table = Table(
            title="The same in numbers, rounded up.",
            columns=("false alarms", "hits, at most"),
            rows=rows,
        )
        return PageSection(
            heading="How much",
            blocks=(
                *map(Prose, self.sentences()),
                Drawings(drawings=(meaning.svg(),), caption=caption),
                table,
                Prose(f"The promise in full. {self.guarantee}"),
            ),
        )

    def _released(self) -> PageSection:
        ledger, card = self.ledger, self.ledger.card
        blocks: list[Block] = [
            Prose(
                f"{len(ledger):,} release{'' if len(ledger) == 1 else 's'} so far, of at most "
                f"{card['most_releases']:,}; the last one has {ledger.rows:,} rows, of at most "
                f"{card['horizon']:,}. The promise covers all of them together, and those to come. "
                "Time is counted in rows: a ledger records no dates."
            )
        ]
        if ledger.torn:
            blocks.append(
                Prose(
                    "The last line of the ledger is not finished and is left out: that release "
                    "was not shown."
                )
            )
        if 0 < len(ledger) <= _FEW:
            blocks.append(_releases("All releases.", ledger.entries))
        elif len(ledger):
            ends = chain(ledger.entries[:_ENDS], ledger.entries[len(ledger) - _ENDS :])
            blocks.append(_releases(f"The first and the last {_ENDS} releases.", ends))
            shown = len(ledger) if len(ledger) <= _MOST else _MOST // 2
            entries = chain(
                ledger.entries[:shown], ledger.entries[max(shown, len(ledger) - shown) :]
            )
            title = f"All {len(ledger):,} releases."
            if shown < len(ledger):
                title = (
                    f"The first and the last {shown:,} of {len(ledger):,} releases; "
                    f"`discreet ledger {self.name} --json` prints all."
                )
            blocks.append(Folded(summary=title, block=_releases("In order.", entries)))
        return PageSection(heading="What has been released", blocks=tuple(blocks))

    def _means(self) -> PageSection:
        card = self.ledger.card
        noise, bounds = card["noise"], card["bounds"]
        kind = str(noise.get("kind"))
        facts = [
            ("variant", card["variant"]),
            ("noise", _NOISES.get(kind, "none" if kind == "None" else kind)),
            (
                "where it comes from",
                (
                    "The operating system's random generator, drawn by the learner's process. A "
                    "seed that can be repeated voids the promise, and the card says so then."
                ),
            ),
            (
                "exactly drawn",
                "yes: whole numbers, without rounding"
                if noise.get("exact")
                else "no: ordinary floating point",
            ),
        ]
        scales = noise.get("std")
        if isinstance(scales, dict):
            shown = ", ".join(f"{_plain(name)} {_shown(value)}" for name, value in scales.items())
            facts.append(("standard deviation of one draw", shown))
        facts += [(f"bound: {_plain(name)}", _shown(value)) for name, value in bounds.items()]
        facts.append(
            (
                "feature map",
                f"public, not fitted to data, with digest {card['features']}"
                if isinstance(card.get("features"), str)
                else "none is stated: rows come as they are given",
            )
        )
        return PageSection(heading="By what means", blocks=(Facts(tuple(facts), compact=True),))

    def _checks(self) -> PageSection:
        lines = [
            "# Is the ledger whole, and what does its card say?",
            f"discreet ledger {self.name}",
            f"discreet ledger {self.name} --card",
            "# Does it agree with a copy that was kept elsewhere?",
            f"discreet ledger {self.name} --against COPY",
        ]
        if self.meaning is not None and self.mu is not None:
            lines += [
                "# Does mu keep the promise? This prints a delta of at most the one above.",
                (
                    'python -c "from discreet import accounting as a; '
                    f'print(a.gaussian_delta(epsilon={self.meaning.epsilon!r}, mu={self.mu!r}))"'
                ),
            ]
        return PageSection(
            heading="How to check it",
            blocks=(
                Prose(
                    "A digest is a fingerprint: it fixes the values of a release, and the head "
                    "fixes the whole ledger. Keep the head elsewhere; a ledger that was altered or "
                    "rewound does not lead to it. A digest does not show that the noise was drawn, "
                    "which is a matter of the software and of whoever runs it."
                ),
                Commands(tuple(lines)),
            ),
        )


def _change(promise: Guarantee, times: str) -> str:
    """In what two worlds differ."""
    if promise.protects == "rewards":
        return (
            f"the person's reward in {times} is what it is, or any other within the stated bounds"
            if promise.neighbours == "replacement"
            else f"the person's reward in {times} counts, or is taken to be at the centre"
        )
    return (
        f"the person's {promise.record} in {times} are what they are, or any others within the "
        "stated bounds"
        if promise.neighbours == "replacement"
        else f"the person's rows in {times} count, or do not"
    )


def _worlds(promise: Guarantee) -> tuple[str, str]:
    """Two worlds side by side, and what somebody guesses who tries to tell them apart."""
    data = "reward" if promise.protects == "rewards" else "data"
    if promise.neighbours == "replacement":
        return (
            f"one person's {data} as with any other {data} in its place, and the other way round",
            f"which of two versions of one person's {data} was used",
        )
    if data == "reward":
        return (
            "one person's reward as with one at the centre in its place, and the other way round",
            "whether one person's reward counted",
        )
    return (
        "one person's rows as without them, and the other way round",
        "whether one person's rows counted",
    )


def _releases(title: str, entries: Iterable[Entry]) -> Table:
    rows = tuple((f"{one.number:,}", f"{one.rows:,}", one.sha256) for one in entries)
    return Table(
        title=title, columns=("number", "rows", "SHA-256 of its values"), rows=rows, numeric=False
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: object) -> str:
    """A number in at most six digits; anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
