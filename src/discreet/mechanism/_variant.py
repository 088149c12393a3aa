"""What a variant is, and what several of them share.

That is what they refuse, and Gaussian noise by exact accounting. The variants have modules of their
own; the table of them is in `variants`.
"""

import math
from typing import Protocol, Self

from discreet import accounting
from discreet.errors import ParameterError
from discreet.mechanism._confidence import JointWidth
from discreet.mechanism._mechanism import Mechanism
from discreet.mechanism._perturbations import Perturbations
from discreet.mechanism.noise import _discrete_gaussian
from discreet.mechanism.noise._gaussian import GaussianNoise
from discreet.privacy import Guarantee, Privacy
from discreet.problem import Problem, Setting


class Variant(Protocol):
    """A way to perturb, ready to be calibrated."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def summary(self) -> str:
        """One line for tables and help."""

    @property
    def private(self) -> bool:
        """Whether it takes a privacy target."""

    @property
    def open_ended(self) -> bool:
        """Whether it can do without a horizon."""

    @property
    def perturbations(self) -> Perturbations | None:
        """The user's own perturbations, if the variant uses any."""

    def with_memory(self, memory: int) -> "Variant":
        """The same, but forgetting what is older than so many rows, for worlds that change.

        Args:
            memory: how many rows are remembered.

        Returns:
            The variant.

        Raises:
            ParameterError: if it has no memory to set.
        """

    def mechanism(
        self, setting: Setting, privacy: Privacy | None, *, noise: str = "float"
    ) -> Mechanism:
        """Calibrate: choose the noise, the shift and the bounds.

        Args:
            setting: problem, horizon and failure probability.
            privacy: the target; None where nothing is promised.
            noise: 'exact', discrete Gaussian noise in whole numbers, or 'float', as in simulations.

        Returns:
            The mechanism.

        Raises:
            ParameterError: if the target cannot be met in this setting.
        """


class NoTree:
    """Variants without a tree."""

    name: str

    def with_tree(self, tree: str) -> Self:
        """Refuse: there is no tree.

        Args:
            tree: any form.

        Raises:
            ParameterError: always.
        """
        raise ParameterError("tree", f"is {tree!r}, but variant {self.name!r} has no tree")


class NoMemory:
    """Variants that forget nothing."""

    name: str

    def with_memory(self, memory: int) -> Self:  # noqa: ARG002  # as in Windowed
        """Refuse: there is nothing to set.

        Args:
            memory: any number of rows.

        Returns:
            No variant: it is refused.

        Raises:
            ParameterError: always.
        """
        raise ParameterError(
            "memory", f"has no meaning for variant {self.name!r}, which forgets nothing"
        )


class OwnShift:
    """Variants of Gaussian noise by exact accounting that need no shift."""

    name: str
    confidence: JointWidth

    def with_calibration(self, calibration: str) -> Self:
        """The same: it has no other calibration than 'gdp'.

        Args:
            calibration: 'gdp'.

        Returns:
            The variant itself.

        Raises:
            ParameterError: it is another.
        """
        if calibration != "gdp":
            raise ParameterError(
                "calibration", f"is {calibration!r}, but variant {self.name!r} is always 'gdp'"
            )
        return self

    def with_shift(self, shift: float) -> Self:
        """Refuse: the shift is chosen at each release.

        Args:
            shift: any shift.

        Raises:
            ParameterError: always.
        """
        raise ParameterError("shift", f"is {shift:g}, but variant {self.name!r} chooses its own")

    def with_rho_min(self, rho_min: float) -> Self:
        """Refuse: there is no such bound.

        Args:
            rho_min: any bound.

        Raises:
            ParameterError: always.
        """
        raise ParameterError("rho_min", f"is {rho_min:g}, but variant {self.name!r} has none")


def least_noise(
    problem: Problem, privacy: Privacy, *, person: float, ratio: float | None
) -> GaussianNoise:
    """The least Gaussian noise that exact accounting allows; on the moment alone for rewards.

    Args:
        problem: the stated bounds.
        privacy: the target.
        person: what one person's rounds cost over all releases, in rows in one sum.
        ratio: the moment's noise over the Gram matrix's; None for the best one.

    Returns:
        The law of one draw.
    """
    mu_one = math.nextafter(accounting.gaussian_mu(privacy) / person, 0.0)
    if privacy.protects == "rewards":
        std = accounting.reward_std(problem, mu_one=mu_one, neighbours=privacy.neighbours)
        return GaussianNoise(std=0.0, moment_std=std)
    scales = accounting.row_scales(
        problem, mu_one=mu_one, neighbours=privacy.neighbours, ratio=ratio
    )
    return GaussianNoise(std=scales.gram_std, moment_std=scales.moment_std)


def gaussian_mechanism(
    variant: OwnShift,
    law: GaussianNoise,
    use: _discrete_gaussian.Use,
    *,
    noise: str,
    argument: str,
    policy: str,
) -> Mechanism:
    """The mechanism that draws from a law, in floating point or in whole numbers.

    Args:
        variant: whose it is.
        law: the law of one draw.
        use: where it is drawn, when, and for which target.
        noise: 'exact' or 'float'.
        argument: why the target is met, with gaps for the words for what is protected.
        policy: the policy that is played unless another one is given.

    Returns:
        The mechanism.
    """
    reason = _argument(argument, use.privacy)
    return Mechanism(
        variant=variant.name,
        setting=use.setting,
        schedule=use.schedule,
        strategy=use.strategy,
        noise=_discrete_gaussian.drawn(law, noise, use),
        confidence=variant.confidence,
        guarantee=Guarantee.meeting(use.privacy, _discrete_gaussian.argument(reason, noise)),
        policy=policy,
    )


def _argument(text: str, privacy: Privacy) -> str:
    """An argument, in the words for what is protected."""
    if privacy.protects == "rewards":
        return text.format(
            where=" on the sums of action times reward",
            deviations="deviation",
            record="reward",
        )
    return text.format(where="", deviations="deviations", record="row")
