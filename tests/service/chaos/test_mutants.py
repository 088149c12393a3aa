"""Services that do one thing wrong on purpose: the campaign has to find every one of them out."""

from pathlib import Path

import pytest

from service.chaos.campaign import Campaign
from service.chaos.living import until

MUTANTS = {
    # A batch is learned twice; the releases that its second half made are listed nowhere.
    "doubles": "an event is rows|closed of|learner has|rows of|are not listed",
    "zeroes": "were not learned",  # a batch is learned as rows of zeros
    "swaps": "has the reward|has a reward",  # rewards go to the wrong events
    "hasty": "events, not|which was acknowledged|again",  # acknowledged and not written down
    "deaf": "has the reward",  # rewards are accepted and not written down
}


STRIKES = 6  # times that it did the wrong thing where that matters


def found_out(folder: Path, mutant: str) -> None:
    with Campaign(folder, mutant=mutant) as campaign:
        until(lambda: campaign.strikes >= STRIKES, "the mutant does nothing", campaign.front.said)
        with pytest.raises(AssertionError, match=MUTANTS[mutant]):
            campaign.finish()


def test_a_batch_that_is_learned_twice_is_found_out(tmp_path: Path) -> None:
    found_out(tmp_path, "doubles")


def test_events_that_were_acknowledged_and_not_written_down_are_found_out(tmp_path: Path) -> None:
    found_out(tmp_path, "hasty")


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", ["zeroes", "swaps", "deaf"])
def test_what_else_can_be_wrong_is_found_out(tmp_path: Path, mutant: str) -> None:
    found_out(tmp_path, mutant)
