"""`discreet card`: a page for people, of public facts alone."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.stats import norm
from typer.testing import CliRunner, Result

from discreet import LinUCB, Privacy, Problem, accounting, read_ledger
from discreet.cli.card import _name
from discreet.cli.card import card as command
from discreet.curator.growing_ledger import GrowingLedger
from discreet.mechanism.variants import named
from discreet.problem import Setting
from discreet.release._card import privacy_card
from discreet.release.ledger import Ledger
from discreet.report._card_page import Card
from discreet.report._tradeoff import Meaning, percent
from helpers import target

NASTY = "<script>alert('&')</script>\"><img src=x onerror=y>"
FEATURES = "ab" * 32


class Outline(HTMLParser):
    """What a browser would see: tags, references and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.words = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [name for name, _ in attrs if name in {"src", "href", "onerror"}]

    def handle_data(self, data: str) -> None:
        self.words += data


def run(*arguments: object) -> Result:
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A learner with 105 releases."""
    path = tmp_path_factory.mktemp("card") / "some learner"
    problem = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1, features=FEATURES)
    privacy = Privacy(epsilon=1, delta=1e-6)
    with LinUCB(problem, horizon=4000, privacy=privacy, variant="tight", path=path) as bandit:
        bandit.observe(np.tile([[0.6123, 0.2345]], (3000, 1)), np.full(3000, 0.4567))
    return path


def page_of(ledger: Ledger) -> Outline:
    return Outline(Card.of(ledger, name="learner").page().html())


def test_the_page_says_who_how_much_what_not_what_was_released_and_how_to_check(
    stored: Path, tmp_path: Path
) -> None:
    outcome = run(stored, "--html", tmp_path / "card.html")
    assert outcome.exit_code == 0, outcome.output
    page = (tmp_path / "card.html").read_text("utf-8")
    seen, ledger = Outline(page), read_ledger(stored)
    for heading in (
        "Who is protected, and against whom",
        "How much",
        "What is not protected",
        "What has been released",
        "By what means",
        "How to check it",
    ):
        assert heading in seen.words
    assert ledger.learner in seen.words
    assert ledger.head in seen.words
    assert FEATURES in seen.words
    assert all(entry.sha256 in page for entry in ledger.entries)
    assert len(ledger) == 105
    assert str(ledger.card["text"]).partition(" Rows are made")[0] in seen.words
    assert "discreet ledger 'some learner'" in seen.words
    assert str(stored.parent) not in page  # where it is stored is nobody's business
    assert {"svg", "details", "pre"} <= set(seen.tags)
    assert not {"script", "img", "link", "iframe"} & set(seen.tags)
    assert not seen.references
    assert "default-src 'none'" in page


def test_the_command_that_recomputes_delta_prints_at_most_the_promised_one(stored: Path) -> None:
    found = Card.of(read_ledger(stored), name="x")
    line = next(line for line in found._checks().blocks[1].lines if "gaussian_delta" in line)  # type: ignore[attr-defined]
    numbers = re.search(r"epsilon=(\S+), mu=([^)]+)\)", line)
    assert numbers is not None
    epsilon, mu = map(float, numbers.groups())
    assert (epsilon, mu) == (1.0, found.ledger.card["mu"])
    assert accounting.gaussian_delta(epsilon=epsilon, mu=mu) <= 1e-6


def test_it_reads_nothing_but_the_ledger_and_changes_nothing(stored: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.ledger"
    alone.write_bytes(Path(f"{stored}.ledger").read_bytes())
    before = {place: place.read_bytes() for place in stored.parent.iterdir()}
    mine, theirs = (json.loads(run(place, "--json").stdout) for place in (alone, stored))
    assert mine == theirs
    assert before == {place: place.read_bytes() for place in stored.parent.iterdir()}
    page = Card.of(read_ledger(alone), name="x").page().html()
    for secret in ("0.6123", "0.2345", "0.4567"):
        assert secret not in page


def test_json_and_the_terminal_say_the_same(stored: Path, tmp_path: Path) -> None:
    found = json.loads(run(stored, "--json", "--html", tmp_path / "c.html").stdout)
    assert found["card"]["releases"] == 105
    assert found["card"]["epsilon"] == 1
    assert found["page"] == str(tmp_path / "c.html")
    assert found["meaning"]["even_guess_right"] == pytest.approx(
        norm.cdf(found["card"]["mu"] / 2), rel=1e-12
    )
    shown = " ".join(run(stored).output.split())
    for sentence in found["in_words"]:
        assert sentence in shown


def test_every_variant_has_a_page(variant: object, setting: Setting) -> None:
    mechanism = variant.mechanism(setting, target(variant))  # type: ignore[attr-defined,arg-type]
    seen = page_of(Ledger(privacy_card(mechanism)))
    if mechanism.guarantee.private:
        assert "Who is protected" in seen.words
    else:
        assert "No privacy is promised" in seen.words
        assert "Who is protected" not in seen.words
    assert "0 releases so far" in seen.words


def test_add_remove_several_rounds_and_floating_point_are_told(setting: Setting) -> None:
    privacy = Privacy(epsilon=1, delta=1e-6, neighbours="add-remove", contributions_per_user=3)
    mechanism = named("tight").mechanism(setting, privacy)
    words = page_of(Ledger(privacy_card(mechanism))).words
    assert "rows in up to 3 rounds count, or do not" in words
    assert "Low bits" in words
    assert "more rounds than 3" in words


def test_strange_cards_are_refused_and_strange_texts_escaped(setting: Setting) -> None:
    good = privacy_card(named("tight").mechanism(setting, Privacy(epsilon=1, delta=1e-6)))
    for wrong in (
        {},
        good | {"format": "x"},
        good | {"epsilon": "1"},
        good | {"epsilon": True},
        good | {"delta": None},
        good | {"epsilon": -1},
        good | {"noise": None},
        good | {"bounds": []},
        good | {"horizon": 1.5},
        {key: value for key, value in good.items() if key != "argument"},
    ):
        with pytest.raises(ValueError, match="without a privacy card"):
            Card.of(Ledger(wrong), name="x")
    evil = good | {
        "variant": NASTY,
        "argument": NASTY,
        "record": NASTY,
        "discreet": NASTY,
        "features": NASTY,
        "bounds": {NASTY: NASTY},
        "noise": {"kind": NASTY, "std": {NASTY: NASTY}, "exact": NASTY},
        "mu": NASTY,
    }
    seen = page_of(Ledger(evil))
    assert not {"script", "img"} & set(seen.tags)
    assert not seen.references
    assert NASTY in seen.words


def test_a_huge_ledger_is_cut_in_the_middle_and_says_so(setting: Setting) -> None:
    mechanism = named("tight").mechanism(setting, Privacy(epsilon=1, delta=1e-6))
    ledger = GrowingLedger(privacy_card(mechanism))
    for number in range(1, 20_003):
        ledger.append(number, number, f"{number:064x}")
    page = Card.of(ledger, name="x").page().html()
    for number, there in ((1, True), (10_000, True), (10_002, False), (20_002, True)):
        assert (f"{number:064x}" in page) is there
    assert "of 20,002 releases" in page


def test_a_broken_ledger_is_one_line_and_no_page(stored: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.ledger"
    data = Path(f"{stored}.ledger").read_bytes()
    broken.write_bytes(data.replace(b'"rows":24,', b'"rows":25,'))
    outcome = run(broken, "--html", tmp_path / "card.html")
    assert outcome.exit_code == 1
    assert "line 3 was altered" in outcome.stderr
    assert not (tmp_path / "card.html").exists()


def test_a_page_that_cannot_be_written_is_named_as_it_was_given(
    stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()  # not to be replaced by a file, by whoever
    outcome = run(stored, "--html", tmp_path / "folder")
    assert isinstance(outcome.exception, OSError)
    assert outcome.exception.filename == str(tmp_path / "folder")
    assert [*tmp_path.iterdir()] == [tmp_path / "folder"]


def test_a_page_names_no_folder_no_user_and_no_host() -> None:
    assert _name("/home/somebody/data/learner.ledger") == "learner.ledger"
    assert _name("a folder/it's mine") == "'it'\"'\"'s mine'"
    address = "postgresql://somebody:secret@host.example/people#news"
    assert _name(address) == "'postgresql://...#news'"


# What the numbers mean


@pytest.mark.parametrize("mu", [0.01, 0.2367, 1.0, 5.0])
@pytest.mark.parametrize("alarms", [1e-6, 0.01, 0.3, 0.9])
def test_no_test_of_two_bell_curves_hits_more_often_than_the_bound(
    mu: float, alarms: float
) -> None:
    power = norm.sf(norm.isf(alarms) - mu)  # of the best test, by Neyman and Pearson
    for delta in (1e-9, 1e-3):
        epsilon = accounting.gaussian_epsilon(delta=delta, mu=mu)
        for known in (mu, None):
            meaning = Meaning(epsilon=epsilon, delta=delta, mu=known)
            assert power <= meaning.hits(alarms) * (1 + 1e-9)
            assert norm.cdf(mu / 2) <= meaning.right * (1 + 1e-9)
        assert Meaning(epsilon=epsilon, delta=delta, mu=mu).hits(alarms) == pytest.approx(power)


def test_randomised_response_reaches_the_bound_without_mu() -> None:
    meaning = Meaning(epsilon=1.0, delta=0.0, mu=None)
    truth = np.e / (1 + np.e)
    assert meaning.hits(1 - truth) == pytest.approx(truth)
    assert meaning.right == pytest.approx(truth)
    assert Meaning(epsilon=1e6, delta=0.5, mu=None).right == 1.0
    assert Meaning(epsilon=1e6, delta=0.5, mu=None).to_json()["factor"] is None


def test_percentages_are_rounded_up() -> None:
    assert [percent(share) for share in (0.01, 0.079611, 0.5, 1.0)] == [
        "1%",
        "7.97%",
        "50%",
        "100%",
    ]


@pytest.mark.parametrize(
    ("neighbours", "protects", "worlds", "guess"),
    [
        (
            "replacement",
            "rows",
            "with one person's data as with any other data in its place",
            (
                "everything about everybody else, and has to guess which of two versions of one "
                "person's data was used"
            ),
        ),
        (
            "add-remove",
            "rows",
            "with one person's rows as without them",
            "everything about everybody else, and has to guess whether one person's rows counted",
        ),
        (
            "replacement",
            "rewards",
            "with one person's reward as with any other reward in its place",
            (
                "and this person's decision sets and actions, and has to guess which of two "
                "versions of one person's reward was used"
            ),
        ),
        (
            "add-remove",
            "rewards",
            "with one person's reward as with one at the centre in its place",
            (
                "and this person's decision sets and actions, and has to guess whether one "
                "person's reward counted"
            ),
        ),
    ],
)
def test_what_the_numbers_mean_is_said_of_the_worlds_that_are_compared(
    setting: Setting, neighbours: str, protects: str, worlds: str, guess: str
) -> None:
    privacy = Privacy(epsilon=1, delta=1e-6, neighbours=neighbours, protects=protects)
    mechanism = named("tight").mechanism(setting, privacy)
    words = page_of(Ledger(privacy_card(mechanism))).words
    assert worlds in words
    assert guess in words
    assert ("Whatever others see" in words) == (protects == "rows")
    assert ("which rounds count are public" in words) == (protects == "rewards")
