"""The table of multi-armed algorithms: how to make each, what it promises, and where it is from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from discreet.baselines.arms._adaptive import AdaPKLUCB, AdaptiveEpisodes, AdaPUCB
from discreet.baselines.arms._divergence import DPIMED, DPKLUCB, IMED, KLUCB, DivergenceIndex
from discreet.baselines.arms._elimination import DPSE, Elimination
from discreet.baselines.arms._lazy import AnytimeLazyUCB, LazyBatches, LazyDPTS
from discreet.baselines.arms._learner import ArmLearner, ArmRule, checked_epsilon
from discreet.baselines.arms._ucb import DPUCB, UCB1, UpperConfidence
from discreet.errors import ParameterError
from discreet.mechanism.noise.sources import NoiseSource


@dataclass(frozen=True, kw_only=True)
class ArmBaseline:
    """One multi-armed algorithm.

    Attributes:
        name: its name in `RULES`.
        source: the paper.
        private: whether it needs an epsilon. If so, its guarantee is pure: delta is 0.
        make_rule: makes its rule.
        make_learner: makes its learner.
    """

    name: str
    source: str
    private: bool
    make_rule: Callable[..., ArmRule]
    make_learner: Callable[..., ArmLearner]

    @property
    def protects(self) -> str:
        """What is private: "rewards" or "nothing". There are no features, and arms are shown."""
        return "rewards" if self.private else "nothing"

    @property
    def trust(self) -> str:
        """Who has to be trusted with a reward as it is: the learner, which is "central"."""
        return "central" if self.private else "none"

    @property
    def kind(self) -> str:
        """The kind of guarantee: "pure" (delta is 0) or "none"."""
        return "pure" if self.private else "none"

    def rule(self, *, n_arms: int, horizon: int, epsilon: float | None = None) -> ArmRule:
        """The algorithm with its settings, for `simulate`.

        Args:
            n_arms: how many arms there are, at least 2.
            horizon: the most pulls there will be, at least one for each arm.
            epsilon: the privacy target; None for algorithms that promise nothing.

        Returns:
            The rule.

        Raises:
            ParameterError: if a setting is out of range, or an epsilon is missing or not used.
        """
        target = self._target(epsilon)
        return self.make_rule(n_arms=n_arms, horizon=horizon, **target)

    def learner(
        self,
        *,
        n_arms: int,
        horizon: int,
        epsilon: float | None = None,
        noise_source: NoiseSource | None = None,
    ) -> ArmLearner:
        """A learner that follows the rule.

        Args:
            n_arms: how many arms there are, at least 2.
            horizon: the most pulls there will be, at least one for each arm.
            epsilon: the privacy target; None for algorithms that promise nothing.
            noise_source: for tests and simulations only; the guarantee is void with a seeded one.

        Returns:
            The learner, with nothing pulled.

        Raises:
            ParameterError: if a setting is out of range, or an epsilon is missing or not used.
        """
        target = self._target(epsilon)
        source = {"noise_source": noise_source} if self.private else {}
        return self.make_learner(n_arms=n_arms, horizon=horizon, **target, **source)

    def _target(self, epsilon: float | None) -> dict[str, float]:
        if self.private:
            return {"epsilon": checked_epsilon(epsilon)}
        if epsilon is not None:
            raise ParameterError(
                "epsilon", f"is given, but {self.name!r} adds no noise; leave it out"
            )
        return {}


_ROWS = (
    ArmBaseline(
        name="ucb1",
        source="Auer, Cesa-Bianchi & Fischer 2002",
        private=False,
        make_rule=UpperConfidence,
        make_learner=UCB1,
    ),
    ArmBaseline(
        name="kl-ucb",
        source="Garivier & Cappe 2011",
        private=False,
        make_rule=DivergenceIndex,
        make_learner=KLUCB,
    ),
    ArmBaseline(
        name="imed",
        source="Honda & Takemura 2015",
        private=False,
        make_rule=partial(DivergenceIndex, minimum=True),
        make_learner=IMED,
    ),
    ArmBaseline(
        name="dp-ucb",
        source="Mishra & Thakurta 2015; Tossou & Dimitrakakis 2016",
        private=True,
        make_rule=UpperConfidence,
        make_learner=DPUCB,
    ),
    ArmBaseline(
        name="dp-se",
        source="Sajed & Sheffet 2019",
        private=True,
        make_rule=Elimination,
        make_learner=DPSE,
    ),
    ArmBaseline(
        name="dp-se-joint",
        source="Sajed & Sheffet 2019, with smaller batches",
        private=True,
        make_rule=partial(Elimination, joint=True),
        make_learner=partial(DPSE, joint=True),
    ),
    ArmBaseline(
        name="anytime-lazy-ucb",
        source="Hu, Huang & Mehta 2021",
        private=True,
        make_rule=LazyBatches,
        make_learner=AnytimeLazyUCB,
    ),
    ArmBaseline(
        name="adap-ucb",
        source="Azize & Basu 2022",
        private=True,
        make_rule=AdaptiveEpisodes,
        make_learner=AdaPUCB,
    ),
    ArmBaseline(
        name="adap-kl-ucb",
        source="Azize & Basu 2022",
        private=True,
        make_rule=partial(AdaptiveEpisodes, divergence=True),
        make_learner=AdaPKLUCB,
    ),
    ArmBaseline(
        name="lazy-dp-ts",
        source="Hu & Hegde 2022",
        private=True,
        make_rule=partial(LazyBatches, sampling=True),
        make_learner=LazyDPTS,
    ),
    ArmBaseline(
        name="dp-kl-ucb",
        source="Azize, Wu, Honda, Orabona, Ito & Basu 2025",
        private=True,
        make_rule=DivergenceIndex,
        make_learner=DPKLUCB,
    ),
    ArmBaseline(
        name="dp-imed",
        source="Azize, Wu, Honda, Orabona, Ito & Basu 2025",
        private=True,
        make_rule=partial(DivergenceIndex, minimum=True),
        make_learner=DPIMED,
    ),
)

RULES: Mapping[str, ArmBaseline] = MappingProxyType({row.name: row for row in _ROWS})
"""All multi-armed algorithms by name: three that promise nothing, then the private ones by year."""
