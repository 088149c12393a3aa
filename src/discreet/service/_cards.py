"""What is public of a bandit, as JSON: its privacy card and its ledger. No raw data."""

from typing import Any

from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger
from discreet.service._bandit import Bandit


def joined_card(bandit: Bandit, ledger: bytes) -> dict[str, Any]:
    """The privacy card, with what the joiner adds to it.

    Args:
        bandit: whose.
        ledger: the first line of its ledger, which names the learner; empty if there is none yet.
    """
    release, rule = bandit.ranker.release, bandit.spec.reward
    learner = Ledger.parse(ledger).learner if ledger else None
    card = privacy_card(
        release.mechanism, learner=learner, releases=release.number, rows=release.rows
    )
    card["joiner"] = (
        "One event is one row, in the order of events, closed at its deadline, with the reward "
        "that came or the default; a row of zeros if it was not activated, was erased, or is "
        "beyond its subject's cap. Deadline and default are fixed at its rank: now the wait "
        f"is {rule.wait_seconds:g} seconds, and the default is {rule.default:g}. So whether "
        "and when a reward came is protected like the reward."
    )
    if card["protects"] == "rewards":
        card["joiner"] += (
            " Which rows are zeros can be seen: whether an action was activated or erased, and "
            "who came how often, is public here."
        )
    return card


def ledger_summary(lines: bytes) -> dict[str, Any]:
    """What `GET .../ledger` says: every line is checked."""
    if not lines:
        return {"learner": None, "releases": 0, "rows": 0, "head": None, "intact": True,
                "entries": []}  # fmt: skip
    ledger = Ledger.parse(lines)
    return {
        "learner": ledger.learner,
        "releases": len(ledger),
        "rows": ledger.rows,
        "head": ledger.head,
        "intact": True,
        "entries": [
            {"number": one.number, "rows": one.rows, "sha256": one.sha256} for one in ledger.entries
        ],
    }
