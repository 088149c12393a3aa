"""`tight`: its calibration to the last digit, and its noise and its privacy as they come out.

Statistical tests look at many learners with seeded noise. Each passes a right implementation but
with probability below 1e-6 (seeds are fixed, so the verdict can be repeated); beside each stands
what it would not pass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet import (
    LinUCB,
    Mechanism,
    Privacy,
    Problem,
    Release,
    Setting,
    Thompson,
    accounting,
    greedy,
)
from discreet.errors import ParameterError
from discreet.mechanism import JointWidth, _regret
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.mechanism.planning import plan
from discreet.mechanism.schedules import Schedule, batches, every_round, geometric, hybrid
from discreet.mechanism.strategies import (
    Buffered,
    Optimised,
    SquareRoot,
    Strategy,
    Tree,
    independent,
)
from discreet.mechanism.variants import Tight, named
from discreet.problem import OPEN_FAILURE_PROB, OPEN_HORIZON
from discreet.release import confidence
from discreet.release.policies import UCB, Policy
from discreet.simulation import Simulation, run_seed
from discreet.simulation.environments import Basis, Fixed, Sphere
from helpers import EARLY, TARGET, restarted, seeded, unit_rows

F64 = NDArray[np.float64]

PAPER = Privacy(epsilon=1.0, delta=0.1)
UNIT = Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
TIGHT = named("tight")
LONG = 50_000_000


def setting(problem: Problem = UNIT, horizon: int = LONG) -> Setting:
    return Setting(problem=problem, horizon=horizon)


def stds(mechanism: Mechanism) -> tuple[float, float]:
    return mechanism.noise.std, mechanism.noise.moment_std


# Calibration


STRATEGIES: dict[str, Strategy] = {
    "buffered": Buffered(),
    "independent": independent(),
    "square root": SquareRoot(),
    "covering": Tree(pan_private=False),
    "pan-private": Tree(pan_private=True),
    "optimised": Optimised(np.ones(25), turns=10),
}
TARGETS = [
    Privacy(epsilon=1.0, delta=0.1),
    Privacy(epsilon=0.1, delta=1e-6),
    Privacy(epsilon=5.0, delta=1e-9, contributions_per_user=3),
    Privacy(epsilon=1.0, delta=1e-6, neighbours="add-remove"),
]
PROBLEMS = [UNIT, Problem(dim=2, action_norm=2.0, reward_bound=0.5, theta_norm=3.0)]


def realised(mechanism: Mechanism, privacy: Privacy) -> float:
    """The mu of all releases by the written-out encoder: what the noise really costs."""
    problem = mechanism.setting.problem
    gram_std, moment_std = stds(mechanism)
    one = accounting.row_cost(
        action_norm=problem.action_norm,
        reward_bound=problem.reward_bound,
        gram_std=gram_std,
        moment_std=moment_std,
        neighbours=privacy.neighbours,
    )
    longest = np.linalg.norm(mechanism.strategy.encoder(mechanism.releases), axis=0).max()
    return float(one * longest * privacy.contributions_per_user)


@pytest.mark.parametrize("problem", PROBLEMS, ids=["unit", "other bounds"])
@pytest.mark.parametrize("privacy", TARGETS, ids=str)
@pytest.mark.parametrize("name", STRATEGIES)
def test_the_noise_costs_what_the_target_allows_and_never_more(
    problem: Problem, privacy: Privacy, name: str
) -> None:
    variant = TIGHT.with_schedule(batches(40)).with_strategy(STRATEGIES[name])
    mechanism = variant.mechanism(setting(problem, 1024), privacy)
    allowed, spent = accounting.gaussian_mu(privacy), realised(mechanism, privacy)
    assert spent <= allowed
    delta = accounting.gaussian_delta(epsilon=privacy.epsilon, mu=spent)
    assert delta <= privacy.delta
    if isinstance(mechanism.strategy, Tree):  # charged for a level that 25 releases do not fill
        assert spent == pytest.approx(allowed * math.sqrt(5 / 6), rel=1e-9)
    else:  # a numerical encoder is charged a trace more, for other machines
        trace = 2e-7 if isinstance(mechanism.strategy, Optimised) else 1e-9
        assert spent == pytest.approx(allowed, rel=trace)
        assert delta == pytest.approx(privacy.delta, rel=1000 * trace)


def test_the_default_costs_what_the_target_allows() -> None:
    mechanism = TIGHT.mechanism(setting(horizon=20_000), PAPER)
    allowed = accounting.gaussian_mu(PAPER)
    assert allowed * (1 - 1e-9) < realised(mechanism, PAPER) <= allowed


EVERY_STRATEGY = {
    "pan-private": Tree(),
    "covering": Tree(pan_private=False),
    "buffered": Buffered(),
    "square root": SquareRoot(),
}


@pytest.mark.parametrize("contributions", [1, 2, 3, 10])
@pytest.mark.parametrize("schedule", [batches(1), batches(5), hybrid()], ids=["1", "5", "hybrid"])
@pytest.mark.parametrize("name", EVERY_STRATEGY)
def test_noise_is_calibrated_by_the_cost_that_is_accounted_for(
    name: str, schedule: Schedule, contributions: int
) -> None:
    privacy = replace(PAPER, contributions_per_user=contributions)
    variant = TIGHT.with_schedule(schedule).with_strategy(EVERY_STRATEGY[name])
    mechanism = variant.mechanism(setting(horizon=1_000), privacy)
    assert mechanism.cost == pytest.approx(accounting.gaussian_mu(privacy), rel=1e-9)


def test_rounds_in_small_nodes_need_less_noise_than_rounds_in_one_batch() -> None:
    variant = TIGHT.with_schedule(batches(1)).with_tree("covering")
    one, ten = (
        np.array(stds(variant.mechanism(setting(horizon=8), replace(PAPER, **rounds))))
        for rounds in ({}, {"contributions_per_user": 10})
    )
    # Of ten rounds in a tree of four levels: 10 nodes of 1 round, 5 of 2, 2 of 4 and 1 of 2, 1 of
    # 8 and 1 of 2.
    squares = 10 * 1 + 5 * 4 + (2 * 16 + 4) + (64 + 4)
    np.testing.assert_allclose(ten, math.sqrt(squares / 4) * one, rtol=1e-9)
    assert (ten < 0.6 * 10 * one).all()


def test_three_rounds_of_one_person_need_three_times_the_noise() -> None:
    one = TIGHT.mechanism(setting(), PAPER)
    three = TIGHT.mechanism(setting(), replace(PAPER, contributions_per_user=3))
    np.testing.assert_allclose(stds(three), 3 * np.array(stds(one)), rtol=1e-9)
    assert three.guarantee.contributions_per_user == 3
    assert "in up to 3 rounds" in str(three.guarantee)


def test_leaving_out_a_person_needs_less_noise_than_replacing_one() -> None:
    replaced = TIGHT.mechanism(setting(), PAPER)
    left_out = TIGHT.mechanism(setting(), replace(PAPER, neighbours="add-remove"))
    assert max(np.array(stds(left_out)) / stds(replaced)) < 0.85
    assert "leaving out one person's rows in one round" in str(left_out.guarantee)


def test_the_moments_share_of_the_noise_can_be_chosen() -> None:
    best = TIGHT.mechanism(setting(), PAPER)
    assert best.noise.moment_std / best.noise.std == pytest.approx(
        accounting.best_ratio(UNIT), rel=1e-12
    )

    def total(mechanism: Mechanism) -> float:
        gram_std, moment_std = stds(mechanism)
        return moment_std**2 + 2 * gram_std**2

    for ratio in (0.5, 1.0, 1.3, 2.0):
        own = replace(TIGHT, ratio=ratio).mechanism(setting(), PAPER)
        assert own.noise.moment_std / own.noise.std == pytest.approx(ratio, rel=1e-12)
        assert total(own) > total(best)
    with pytest.raises(ParameterError, match="ratio: "):
        replace(TIGHT, ratio=-1.0).mechanism(setting(), PAPER)


def test_a_plan_says_what_the_mechanism_has() -> None:
    mechanism = TIGHT.mechanism(setting(horizon=10_000), PAPER)
    found = plan(TIGHT, setting().problem, horizon=10_000, privacy=PAPER)
    norms = mechanism.strategy.row_norms(mechanism.releases, np.array([1, mechanism.releases]))
    guarantee = found.pop("guarantee")
    assert found == {
        "variant": "tight",
        "releases": mechanism.releases,
        "gdp_mu": accounting.gaussian_mu(PAPER),
        "column_norm": mechanism.strategy.column_norm(mechanism.releases),
        "gram_noise_std": mechanism.noise.std,
        "moment_noise_std": mechanism.noise.moment_std,
        "first_noise_scale": pytest.approx(norms[0]),
        "last_noise_scale": pytest.approx(norms[1]),
        "regret_bound": _regret.regret_bound(mechanism),
        "paper_regret_bound": plan(
            named("gaussian"), setting().problem, horizon=10_000, privacy=PAPER
        )["regret_bound"],
        "half_gain_rows": mechanism.half_gain_rows,
    }
    assert guarantee == mechanism.guarantee.to_json()


# With the paper's tree


@pytest.mark.parametrize("name", ["gaussian", "gaussian-opt"])
def test_exact_accounting_divides_the_papers_noise_by_more_than_thirteen(name: str) -> None:
    problem = Problem(dim=5, action_norm=1, reward_bound=1, theta_norm=1)
    paper = named(name).mechanism(setting(problem), PAPER)
    exact = named(name).with_calibration("gdp").mechanism(setting(problem), PAPER)
    assert paper.noise.std / exact.noise.std == pytest.approx(13.6, abs=0.05)
    assert exact.noise.moment_std == exact.noise.std
    assert exact.bounds.rho_max < paper.bounds.rho_max / 10
    assert exact.strategy == paper.strategy
    assert "exact Gaussian accounting" in str(exact.guarantee)
    again = named(name).with_calibration("gdp").with_calibration("paper")
    assert again.mechanism(setting(problem), PAPER).noise == paper.noise


@pytest.mark.parametrize("name", ["wishart", "wishart-opt", "wishart-unshifted"])
def test_wishart_noise_has_no_gaussian_accounting(name: str) -> None:
    with pytest.raises(ParameterError, match=f"calibration: is 'gdp', .* '{name}'"):
        named(name).with_calibration("gdp")


@pytest.mark.parametrize("name", ["gaussian", "tight"])
def test_an_unknown_calibration_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="calibration: is 'rough'"):
        named(name).with_calibration("rough")


def test_tight_is_always_exact() -> None:
    assert TIGHT.with_calibration("gdp") == TIGHT
    with pytest.raises(ParameterError, match="calibration: is 'paper', but variant 'tight'"):
        TIGHT.with_calibration("paper")


def test_what_tight_does_not_have_cannot_be_set() -> None:
    for call, parameter in ((TIGHT.with_shift, "shift"), (TIGHT.with_rho_min, "rho_min")):
        with pytest.raises(ParameterError) as refused:
            call(1.0)
        assert refused.value.parameter == parameter


@pytest.mark.parametrize("change", [{"contributions_per_user": 2}, {"neighbours": "add-remove"}])
def test_the_papers_constants_know_replacement_of_one_round_only(
    paper_variant: object, change: dict
) -> None:
    asked = replace(PAPER, **change)
    with pytest.raises(ParameterError, match="privacy: asks for more than replacement"):
        paper_variant.mechanism(setting(), asked)
    if paper_variant.name.startswith("gaussian"):
        exact = paper_variant.with_calibration("gdp").mechanism(setting(), asked)
        assert exact.guarantee.neighbours == asked.neighbours


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        ({"contributions_per_user": 0}, "contributions_per_user"),
        ({"contributions_per_user": 1.5}, "contributions_per_user"),
        ({"neighbours": "friends"}, "neighbours"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused_by_name(change: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        replace(PAPER, **change)
    assert refused.value.parameter == parameter


def test_the_papers_confidence_set_goes_with_its_tree_over_all_rounds() -> None:
    paper = named("gaussian").mechanism(setting(), PAPER)
    with pytest.raises(ParameterError, match="schedule: must be every round"):
        replace(paper, schedule=batches(2))
    with pytest.raises(ParameterError, match="strategy: must be a tree"):
        replace(paper, strategy=Buffered())


def test_joint_widths_go_with_gaussian_noise_only() -> None:
    wishart = named("wishart").mechanism(setting(), PAPER)
    with pytest.raises(ParameterError, match="confidence: of the joint-noise kind"):
        replace(wishart, confidence=JointWidth())
    with pytest.raises(ParameterError, match="strategy: goes with noise"):
        replace(wishart, noise=None)


@pytest.mark.parametrize("prior", [0.0, -1.0, math.nan, 1e9])
def test_a_prior_that_makes_no_sense_is_refused(prior: float) -> None:
    with pytest.raises(ParameterError, match="prior: "):
        JointWidth(prior=prior)


def test_the_width_is_flat_in_the_prior() -> None:
    actions = unit_rows(np.random.default_rng(1), 10, 3)
    widths = {}
    for prior in (0.03, 0.1, 0.3):
        mechanism = replace(TIGHT, confidence=JointWidth(prior=prior)).mechanism(setting(), PAPER)
        release = Release(
            number=50,
            rows=900,
            gram=300 * np.eye(3),
            moment=np.ones(3),
            spread=1.0,
            weight=900.0,
            mechanism=mechanism,
        )
        widths[prior] = confidence.region(release).widths(actions)
    for prior in (0.03, 0.3):
        np.testing.assert_allclose(widths[prior], widths[0.1], rtol=0.1)
        assert (widths[prior] != widths[0.1]).all()


# Without a horizon


def test_an_unknown_horizon_costs_little_noise() -> None:
    learner = LinUCB(UNIT, horizon=None, privacy=PAPER, variant=TIGHT)
    given = LinUCB(UNIT, horizon=LONG, privacy=PAPER, variant=TIGHT)
    assert learner.mechanism.setting.horizon == OPEN_HORIZON == 10**12
    assert learner.mechanism.setting.failure_prob == OPEN_FAILURE_PROB == 1e-8
    ratios = np.array(stds(learner.mechanism)) / stds(given.mechanism)
    assert (ratios > 1.0).all()
    assert (ratios < 1.05).all()
    assert LinUCB(
        UNIT, horizon=None, privacy=PAPER, variant=TIGHT, failure_prob=0.01
    ).mechanism.setting == Setting(problem=UNIT, horizon=OPEN_HORIZON, failure_prob=0.01)
    for _ in range(30):
        learner.learn(learner.choose(np.eye(3)), 1)
    assert learner.release.rows >= 20


def test_other_variants_need_a_horizon(ellipsoid_variant: object) -> None:
    privacy = PAPER if ellipsoid_variant.private else None
    with pytest.raises(ParameterError, match="horizon: is None"):
        LinUCB(UNIT, horizon=None, privacy=privacy, variant=ellipsoid_variant)


# The noise as it comes out


@dataclass(frozen=True)
class Prepared:
    """A variant that is calibrated already, to make many learners of it quickly."""

    ready: Mechanism
    name = "prepared"
    summary = "for tests"
    private = True
    open_ended = True
    perturbations = None

    def mechanism(self, _: Setting, __: Privacy | None, *, noise: str) -> Mechanism:
        del noise
        return self.ready


def releases_of(
    mechanism: Mechanism, rows: list[tuple[F64, float]], *, runs: int, seed: int
) -> list[list[Release]]:
    """All releases of many learners that see the same rows, each with fresh noise."""
    source, found = seeded(seed), []
    problem, horizon = mechanism.setting.problem, mechanism.setting.horizon
    for _ in range(runs):
        learner = LinUCB(problem, horizon=horizon, variant=Prepared(mechanism), noise_source=source)
        shown: list[Release] = []
        for action, reward in rows:
            learner.learn(learner.choose([action]), reward)
            if learner.release.number > len(shown):
                shown.append(learner.release)
        found.append(shown)
    return found


def packed(release: Release) -> F64:
    """The lower triangle of the Gram matrix, row by row, and the moment."""
    return np.concatenate([release.gram[np.tril_indices_from(release.gram)], release.moment])


def deviations(mechanism: Mechanism) -> F64:
    """The standard deviation of one draw, in each packed entry."""
    dim = mechanism.setting.problem.dim
    row, column = np.tril_indices(dim)
    gram_std, moment_std = stds(mechanism)
    diagonal = np.where(row == column, math.sqrt(2), 1.0)
    return np.concatenate([gram_std * diagonal, np.full(dim, moment_std)])


def has_variance(values: F64, variance: float) -> bool:
    """Whether the sum of squares is that of centred normals, at 1e-8."""
    law = stats.chi2(values.size)
    total = float((values**2).sum()) / variance
    return 2 * min(law.cdf(total), law.sf(total)) > 1e-8


each_noise = pytest.mark.parametrize("noise", ["exact", "float"])

FORMS = {
    "buffered": TIGHT.with_schedule(batches(2)),
    "hybrid": TIGHT.with_schedule(hybrid(start=3, ratio=0.5)).with_strategy(Buffered(exponent=0.5)),
    "covering": TIGHT.with_schedule(batches(2)).with_tree("covering"),
    "pan-private": TIGHT.with_schedule(batches(2)).with_tree("pan-private"),
    "square root": TIGHT.with_schedule(geometric(start=2, ratio=0.6)).with_strategy(SquareRoot()),
    "windows": replace(EARLY, growth=0.5),
}


@each_noise
@pytest.mark.parametrize("form", FORMS)
def test_releases_of_nothing_are_noise_of_the_stated_covariance(form: str, noise: str) -> None:
    # Rows of zeros, so that all there is to see is noise: in release i and j, entry for entry,
    # covariance (D D^T)_ij times the square of the entry's deviation. Entries that are too large
    # or small by a quarter are noticed, and noise shared in another way.
    runs, nothing = 500, [(np.zeros(3), 0.0)] * 10
    mechanism = FORMS[form].mechanism(setting(horizon=10), PAPER, noise=noise)
    found = releases_of(mechanism, nothing, runs=runs, seed=1)
    values = np.array([[packed(release) for release in shown] for shown in found])
    values /= deviations(mechanism)  # (runs, J, entries)
    count = mechanism.releases
    assert values.shape == (runs, count, 9)
    decoder = mechanism.strategy.decoder(count)
    covariance = decoder @ decoder.T
    row, column = np.tril_indices(3)
    kinds = [np.flatnonzero(row == column), np.flatnonzero(row != column), np.arange(6, 9)]
    for entries in kinds:
        part = values[:, :, entries]
        for i in range(count):
            assert has_variance(part[:, i], covariance[i, i])
            for wrong in (1.3**2, 0.75**2, 2.0, 0.5):
                assert not has_variance(part[:, i], wrong * covariance[i, i])

    def scores(claimed: F64) -> F64:
        seen = np.einsum("rie,rje->ij", values, values) / (runs * 9)
        spread = np.outer(np.diag(claimed), np.diag(claimed)) + claimed**2
        return np.asarray(np.abs(seen - claimed) / np.sqrt(spread / (runs * 9)))

    assert scores(covariance).max() < 6.5  # 15 pairs or so: 1e-9
    assert scores(np.diag(np.diag(covariance))).max() > 6.5
    other = np.tril(np.ones((count, count)))
    assert scores(other @ other.T).max() > 6.5


def test_the_stated_noise_scale_is_what_stands_in_a_release() -> None:
    mechanism = TIGHT.with_schedule(batches(3)).mechanism(setting(horizon=60), PAPER)
    lengths = np.linalg.norm(mechanism.strategy.decoder(20), axis=1)
    np.testing.assert_allclose(mechanism.noise_table.norms, lengths, rtol=1e-9)
    covering = TIGHT.with_schedule(batches(3)).with_tree("covering")
    mechanism = covering.mechanism(setting(horizon=60), PAPER)
    assert (
        mechanism.noise_table.norms >= np.linalg.norm(mechanism.strategy.decoder(20), axis=1)
    ).all()


def test_the_table_of_many_releases_is_never_below_the_noise_that_stands() -> None:
    mechanism = TIGHT.with_schedule(every_round()).mechanism(setting(horizon=30_000), PAPER)
    table, every = mechanism.noise_table, np.arange(1, 30_001)
    assert len(table.numbers) < 6_000
    exact = mechanism.strategy.row_norms(30_000, every)
    stated = table.norms[np.searchsorted(table.numbers, every)]
    assert (stated >= exact).all()
    assert (stated <= exact * 1.001).all()


# Privacy as an observer finds it


def worst_pair(mechanism: Mechanism) -> tuple[F64, F64]:
    """Two unit actions, with reward 1 each, whose rows are hardest to hide.

    |aa - bb|^2 / (2 s_G^2) + |a - b|^2 / s_u^2 = (1 - c^2) / s_G^2 + 2 (1 - c) / s_u^2 for c = a.b
    is largest at c = -s_G^2 / s_u^2.
    """
    gram_std, moment_std = stds(mechanism)
    cosine = -((gram_std / moment_std) ** 2)
    return np.array([1.0, 0.0]), np.array([cosine, math.sqrt(1 - cosine**2) * (1 - 1e-15)])


def log_likelihood_ratios(
    mechanism: Mechanism, *, place: int, runs: int, which: int, seed: int
) -> F64:
    """Of the two streams, given all releases: the best an observer can do. Shape (runs,).

    Streams differ in one row; all other rows are known to the observer. The law of the releases is
    taken from the stated noise of ``mechanism``, with the strategy's matrices written out.
    """
    first, second = worst_pair(mechanism)
    streams = [[(np.array([0.6, 0.0]), -0.5)] * mechanism.setting.horizon for _ in range(2)]
    streams[0][place], streams[1][place] = (first, 1.0), (second, 1.0)
    shown = releases_of(mechanism, streams[which], runs=runs, seed=seed)
    encoder = mechanism.strategy.encoder(mechanism.releases)
    decoder = mechanism.strategy.decoder(mechanism.releases)
    exact = []
    for rows in streams:
        sums = np.cumsum(
            [
                [x[0] * x[0], x[1] * x[0], x[1] * x[1], reward * x[0], reward * x[1]]
                for x, reward in rows
            ],
            axis=0,
        )
        ends = sums[np.array(mechanism.schedule.times(len(rows))) - 1]
        exact.append(decoder @ encoder @ np.diff(ends, axis=0, prepend=0.0))
    seen = np.array([[packed(release) for release in one] for one in shown])
    scale = deviations(mechanism)
    whitened = [np.linalg.solve(decoder, (seen - mean) / scale) for mean in exact]
    squares = [(part**2).sum(axis=(1, 2)) for part in whitened]
    return np.asarray((squares[1] - squares[0]) / 2)


def looks_normal(values: F64, mean: float, variance: float) -> bool:
    """Whether the mean and the spread are those of this normal law, at 2e-7."""
    score = abs(values.mean() - mean) / math.sqrt(variance / values.size)
    law = stats.chi2(values.size)
    total = ((values - mean) ** 2).sum() / variance
    return bool(score < 5.5 and 2 * min(law.cdf(total), law.sf(total)) > 1e-7)


SMALL = Problem(dim=2, action_norm=1, reward_bound=1, theta_norm=1)
AUDITED = {
    "buffered": TIGHT.with_schedule(batches(2)),
    "every round": TIGHT.with_schedule(every_round()).with_strategy(Buffered(exponent=0.5)),
    "square root": TIGHT.with_schedule(hybrid(start=2, ratio=0.5)).with_strategy(SquareRoot()),
    "windows": replace(EARLY, growth=0.5),
}


@each_noise
@pytest.mark.parametrize("form", AUDITED)
def test_the_best_observer_tells_neighbours_apart_exactly_as_well_as_mu_allows(
    form: str, noise: str
) -> None:
    # The log-likelihood ratio of mu-GDP at its worst is N(mu^2/2, mu^2) under one stream and
    # N(-mu^2/2, mu^2) under the other; the first row falls into the costliest batch.
    mechanism = AUDITED[form].mechanism(setting(SMALL, 6), PAPER, noise=noise)
    mu = accounting.gaussian_mu(PAPER)
    if form == "windows":  # what it costs sums up to one when there is no end of releases
        mu *= np.linalg.norm(mechanism.strategy.encoder(mechanism.releases)[:, 0])
        assert 0.9 < mu / accounting.gaussian_mu(PAPER) < 1
    for which, sign in ((0, 1.0), (1, -1.0)):
        ratios = log_likelihood_ratios(mechanism, place=0, runs=600, which=which, seed=which)
        assert looks_normal(ratios, sign * mu**2 / 2, mu**2)
        for wrong in (0.7 * mu, 1.4 * mu):
            assert not looks_normal(ratios, sign * wrong**2 / 2, wrong**2)


def test_half_the_noise_would_be_caught_by_the_best_observer() -> None:
    mechanism = TIGHT.with_schedule(batches(2)).mechanism(setting(SMALL, 6), PAPER)
    gram_std, moment_std = stds(mechanism)
    quiet = replace(mechanism, noise=GaussianNoise(std=gram_std / 2, moment_std=moment_std / 2))
    mu = accounting.gaussian_mu(PAPER)
    ratios = log_likelihood_ratios(quiet, place=0, runs=300, which=0, seed=5)
    assert not looks_normal(ratios, mu**2 / 2, mu**2)
    assert looks_normal(ratios, (2 * mu) ** 2 / 2, (2 * mu) ** 2)


def test_a_row_in_a_shorter_column_is_hidden_better() -> None:
    mechanism = TIGHT.with_schedule(batches(2)).mechanism(setting(SMALL, 6), PAPER)
    columns = np.linalg.norm(mechanism.strategy.encoder(3), axis=0)
    mu = accounting.gaussian_mu(PAPER) * columns[2] / columns[0]
    ratios = log_likelihood_ratios(mechanism, place=5, runs=300, which=0, seed=6)
    assert looks_normal(ratios, mu**2 / 2, mu**2)
    assert mu < 0.97 * accounting.gaussian_mu(PAPER)


# Playing


@pytest.mark.parametrize("policy", [UCB(), UCB(optimism=0.3), Thompson(), greedy()], ids=str)
@pytest.mark.parametrize(
    "environment", [Sphere(dim=3, n_actions=6), Fixed(dim=3, n_actions=6), Basis(dim=3)], ids=str
)
def test_every_policy_learns_on_tight(policy: Policy, environment: Sphere | Fixed | Basis) -> None:
    # Regret of the second half is below that of the first in the mean over seeds.
    row = TIGHT.mechanism(setting(environment.problem, 40_000), Privacy(epsilon=4.0, delta=0.1))
    played = Simulation(environment=environment, mechanism=row, rounds=40_000, policy=policy)
    halves = np.array([20_000, 40_000])
    regrets = np.mean([run_seed(played, seed, halves) for seed in range(4)], axis=0)
    assert np.isfinite(regrets).all()
    if policy != greedy() or isinstance(environment, Sphere):  # greedy may settle on a wrong arm
        assert regrets[1] - regrets[0] < 0.8 * regrets[0]


def test_policies_use_the_joint_region() -> None:
    rng = np.random.default_rng(2)
    learners = {
        name: LinUCB(
            UNIT,
            horizon=500,
            privacy=PAPER,
            variant=TIGHT,
            policy=policy,
            noise_source=seeded(3),
        )
        for name, policy in {"ucb": UCB(), "greedy": greedy(), "draw": Thompson()}.items()
    }
    for _ in range(60):
        actions = unit_rows(rng, 8, 3)
        for name, learner in learners.items():
            region = learner.confidence
            made = learner.choose(actions)
            estimates, widths = actions @ region.centre, region.widths(actions)
            if name == "ucb":
                assert made.index == (estimates + widths).argmax()
            if name == "greedy":
                assert made.index == (estimates.argmax() if learner.release.number else 0)
            learner.learn(made, float(actions[made.index] @ [0.5, 0.0, 0.5]))


def test_thompson_draws_are_as_wide_as_the_region() -> None:
    # In the eigenbasis each coordinate is normal, as wide as the region. Chi-square at 1e-8.
    mechanism = TIGHT.mechanism(setting(), PAPER)
    gram = np.diag([300.0, 400.0, 900.0])
    release = Release(
        number=30,
        rows=1600,
        gram=gram,
        moment=np.array([30.0, 1.0, 2.0]),
        spread=1.0,
        weight=1600.0,
        mechanism=mechanism,
    )
    region = confidence.region(release)
    rng, count, optimism = np.random.default_rng(4), 4_000, 0.7
    first = np.eye(3)[0]
    mean, spread = first @ region.centre, optimism * region.widths(first[None])[0]
    level = mean + 0.6 * spread
    # Which of two actions wins says on which side of a level the drawn parameter lies.
    pair = np.array([first, [0.0, 0.0, 0.0]])
    shifted = replace(region, weights=region.weights - region.basis.T @ (level * first))
    draws = rng.standard_normal((count, 3))
    wins = sum(shifted.best_of_a_draw(pair, optimism, normals) == 0 for normals in draws)

    def p_value(scale: float) -> float:
        return float(stats.binomtest(wins, count, stats.norm.sf(0.6 / scale)).pvalue)

    assert p_value(1.0) > 1e-8
    assert p_value(0.75) < 1e-8
    assert p_value(1.4) < 1e-8


def test_a_variant_of_ones_own_name_can_be_made() -> None:
    own = Tight(name="mine", summary="mine", schedule=Schedule(start=5, batch=5))
    learner = LinUCB(UNIT, horizon=20, privacy=PAPER, variant=own)
    assert learner.mechanism.variant == "mine"
    assert learner.mechanism.releases == 4


# What a caller may get wrong


def test_matrices_that_calibrate_noise_cannot_be_changed() -> None:
    strategy = Optimised(np.ones(12))
    for matrix in (strategy.encoder(12), strategy.decoder(12)):
        with pytest.raises(ValueError, match="read-only"):
            np.multiply(matrix, 0.5, out=matrix)


@pytest.mark.parametrize("schedule", [every_round(), batches(2)])
def test_an_open_end_with_too_many_releases_is_refused_at_once(
    problem: Problem, schedule: Schedule
) -> None:
    variant = named("tight").with_schedule(schedule)
    with pytest.raises(ParameterError, match=r"horizon: .* the schedule makes more than"):
        LinUCB(problem, horizon=None, privacy=TARGET, variant=variant)


def test_numbers_from_numpy_can_be_saved(problem: Problem, tmp_path: Path) -> None:
    variant = (
        named("tight")
        .with_schedule(batches(np.int64(10)))
        .with_strategy(Buffered(exponent=np.float32(0.25)))
    )
    privacy = Privacy(epsilon=1.0, delta=1e-6, contributions_per_user=np.int64(3))
    learner = LinUCB(problem, horizon=50, privacy=privacy, variant=variant)
    assert restarted(learner, tmp_path / "file").guarantee == learner.guarantee
    assert "in up to 3 rounds" in str(learner.guarantee)


@pytest.mark.parametrize(
    ("change", "parameter"),
    [
        (lambda tight: tight.with_strategy("tree"), "strategy"),
        (lambda tight: tight.with_strategy(Buffered), "strategy"),
        (lambda tight: tight.with_schedule("every"), "schedule"),
        (lambda _: Buffered(exponent="0.4"), "exponent"),
        (lambda _: Schedule(start=10**30, batch=1), "start"),
        (lambda _: Optimised(np.geomspace(1e-30, 1, 10)), "weights"),
        (lambda _: Optimised(np.ones(3), turns=10**18), "turns"),
        (lambda _: Privacy(epsilon=1, delta=1e-6, contributions_per_user=10**60), "contributions"),
    ],
)
def test_a_wrong_piece_is_refused_by_name(
    change: Callable[[Tight], object], parameter: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        change(named("tight"))
    assert refused.value.parameter.startswith(parameter)


def test_a_class_is_not_a_policy(problem: Problem) -> None:
    with pytest.raises(ParameterError, match="policy: "):
        LinUCB(problem, horizon=50, privacy=TARGET, policy=UCB)


def test_a_horizon_before_the_first_release_has_none(problem: Problem) -> None:
    for horizon, releases in ((19, 0), (20, 1)):
        found = plan(named("tight"), problem, horizon=horizon, privacy=TARGET)
        assert found["releases"] == releases
