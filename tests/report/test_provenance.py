import json
import os
from datetime import UTC, datetime

from discreet import __version__
from discreet.report._page import Provenance


def _gathered() -> Provenance:
    return Provenance.gathered(
        command="discreet demo",
        started=datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC),
        seconds=61.4,
        workers=2,
    )


def test_provenance_says_how_when_and_with_what() -> None:
    facts = dict(_gathered().facts(("seeds", "0 to 3")).items)
    assert facts["run it again"] == "discreet demo"
    assert facts["seeds"] == "0 to 3"
    assert facts["started"] == "2024-05-06 07:08 UTC"
    assert facts["took"] == "61 seconds on 2 worker processes"
    assert f"{os.cpu_count()} cores" in facts["machine"]
    assert f"discreet {__version__}" in facts["versions"]
    assert all(name in facts["versions"] for name in ("python", "numpy", "numba"))


def test_provenance_survives_a_round_trip_through_json() -> None:
    found = _gathered().to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert datetime.fromisoformat(found["started"]) == _gathered().started
