"""`LocalLinUCB` and `ShuffleLinUCB`: rows get their noise before anybody else sees them."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from discreet import _checks as checks
from discreet import accounting
from discreet.baselines.linear._learner import LOCAL, MARGIN, ROWS, SHUFFLE
from discreet.baselines.linear._ridge import RidgeRule, every
from discreet.errors import ParameterError
from discreet.kernels import _ridge as kernels
from discreet.privacy import Guarantee, Privacy

_SPLITS = (0.25, 0.5, 0.75)  # shares of delta that are tried for the shuffling itself
_STEPS = 60  # of a bisection over the local epsilon


@dataclass(frozen=True, kw_only=True)
class LocalLinUCB(RidgeRule):
    """LinUCB on rows that every person makes noisy before sending them; locally private.

    After LDP-LinUCB of Zheng, Cai, Huang, Li and Wang ("Locally differentially private (contextual)
    bandits learning", NeurIPS 2020, arXiv:2006.00701). The server publishes its estimate; a person
    chooses with it, on her own device, and sends x x^T and x y with Gaussian noise. Nobody else
    ever sees a raw row.

    Guarantee. Neighbours: one person's decision set and reward are replaced. Assumption: the
    person's noise is secret. Argument: all that leaves her device is one noisy row, released once;
    all else is made of such rows. It holds against the server as well as against other people.

    What is ours: the paper's deviation, 4 sqrt(2 ln(1.25/delta)) / epsilon for both parts, is that
    of the classical bound, which is proven for epsilon up to 1 only. Here the noise is the least
    that the exact Gaussian curve allows for one row. The bound on the norm of the noise of t rows
    is the tail of its largest eigenvalue, times sqrt(t), where the paper has 4 sqrt(d) + 2
    ln(2T/alpha).
    """

    trust = LOCAL

    @property
    def protects(self) -> str:
        """Decision sets and rewards."""
        return ROWS

    @property
    def noise_stds(self) -> accounting.RowScales:
        """The deviations of the noise on one row's Gram matrix and moment."""
        return _row_noise(self, self.privacy)

    @property
    def guarantee(self) -> Guarantee:
        """Local differential privacy."""
        return Guarantee.meeting(
            self.privacy,
            "local: a person's row leaves her device once, with Gaussian noise by exact "
            "accounting, so that the server cannot tell either; the estimate is made of noisy rows",
        )

    @cached_property
    def compiled(self) -> kernels.RidgeSpec:
        """The rule as arguments of the compiled kernels."""
        gram, moment = self.noise_stds
        return self._spec(
            kind=kernels.ROWS,
            gram_std=gram,
            moment_std=moment,
            timing=every(1),
            regularizers=self.horizon,
        )


@dataclass(frozen=True, kw_only=True)
class ShuffleLinUCB(RidgeRule):
    """LinUCB on batches of noisy rows that a shuffler has mixed.

    After Chowdhury and Zhou ("Shuffle private linear contextual bandits", ICML 2022), in the form
    that rests on amplification: people send noisy rows as in `LocalLinUCB`; a trusted shuffler
    permutes those of a batch; the server renews its estimate after each batch. Raw rows are seen
    by nobody, and less noise will do, because nobody knows whose message is whose.

    Guarantee. Neighbours: one person's decision set and reward are replaced. Assumptions: the
    shuffler is honest, and everybody's noise is secret. Observer: whoever sees shuffled batches and
    what is made of them. Argument: each message is (e0, d0)-locally private by the exact Gaussian
    curve; by theorem 3.8 of Feldman, McMillan and Talwar ("Hiding among the clones", FOCS 2021,
    arXiv:2012.12803) the shuffled batch is as private as `amplified` says, given the batches
    before; a person is in one batch. If amplification gains nothing, the local guarantee of each
    message is what counts.

    This is not joint privacy. The others of a batch know the messages that they sent. If all of
    them take theirs off the batch, one message is left, and it keeps its local promise only.

    What is ours: the theorem's conditions are checked, its delta for approximate local privacy
    included. The authors' experiments use the asymptotic form, noise proportional to 1/sqrt(batch)
    with a constant of one, which no theorem covers.

    Attributes:
        batch: rows in a batch; horizon^(3/5), as in the paper's rate, if left out.
    """

    batch: int = None  # type: ignore[assignment]  # horizon^(3/5) if left out
    trust = SHUFFLE

    def __post_init__(self) -> None:
        """Check the batch too."""
        super().__post_init__()
        given: int | None = self.batch
        size = math.ceil(self.horizon**0.6) if given is None else given
        object.__setattr__(self, "batch", checks.count("batch", size))
        if self.batch > self.horizon:
            raise ParameterError(
                "batch", f"is {self.batch}, more than the horizon of {self.horizon}; give less"
            )

    @property
    def protects(self) -> str:
        """Decision sets and rewards."""
        return ROWS

    @cached_property
    def local_target(self) -> Privacy:
        """What each message promises by itself, such that the batch keeps the target.

        The weakest local target that `amplified` turns into the rule's, for a few ways to share
        delta; the rule's own target if none of them is weaker.
        """
        targets = [_weakest(self.privacy, self.batch, share) for share in _SPLITS]
        found = [one for one in targets if one is not None]
        return max([self.privacy, *found], key=accounting.gaussian_mu)

    @property
    def noise_stds(self) -> accounting.RowScales:
        """The deviations of the noise on one row's Gram matrix and moment."""
        return _row_noise(self, self.local_target)

    @property
    def guarantee(self) -> Guarantee:
        """Differential privacy of shuffled batches; not joint, for others may pool their noise."""
        target = self.local_target
        local = f"({target.epsilon:.4g}, {target.delta:.3g})"
        found = Guarantee.meeting(
            self.privacy,
            "what is shown is shuffled batches and what is made of them; a person's row leaves her "
            f"device once, with Gaussian noise that is {local}-locally private, and is mixed with "
            f"those of her batch of {self.batch:,}; privacy amplification by shuffling (Feldman, "
            "McMillan & Talwar 2021, theorem 3.8) does the rest, as long as the others of the "
            f"batch keep their messages to themselves; if they pool them, {local} is left",
        )
        return replace(found, joint=False)

    @cached_property
    def compiled(self) -> kernels.RidgeSpec:
        """The rule as arguments of the compiled kernels."""
        gram, moment = self.noise_stds
        return self._spec(
            kind=kernels.ROWS,
            gram_std=gram,
            moment_std=moment,
            timing=every(self.batch),
            regularizers=math.ceil(self.horizon / self.batch),
        )


def _row_noise(rule: RidgeRule, target: Privacy) -> accounting.RowScales:
    mu = accounting.gaussian_mu(target)
    gram, moment = accounting.row_scales(rule.problem, mu_one=mu)
    return accounting.RowScales(MARGIN * gram, MARGIN * moment)


def amplified(*, local: Privacy, batch: int, delta: float) -> Privacy | None:
    """What a shuffled batch of (epsilon, delta)-locally private messages promises.

    Feldman, McMillan and Talwar (2021), theorem 3.8: for n messages that are (e0, d0)-locally
    private, and e0 <= ln(n / (16 ln(2/delta))), the shuffled batch is
    (e, delta + (e^e + 1) (1 + e^-e0 / 2) n d0)-private with

        e = ln(1 + (e^e0 - 1)/(e^e0 + 1) (8 sqrt(e^e0 ln(4/delta)) / sqrt(n) + 8 e^e0 / n)).

    Args:
        local: (e0, d0), what each message promises.
        batch: n, how many are shuffled.
        delta: the part of delta that is due to shuffling.

    Returns:
        The promise of the batch; None if the theorem's condition does not hold, or says nothing.
    """
    size, delta = checks.count("batch", batch), checks.probability("delta", delta)
    if local.epsilon > math.log(size / (16 * math.log(2 / delta))):
        return None
    clones = math.exp(local.epsilon)
    reach = 8 * math.sqrt(clones * math.log(4 / delta) / size) + 8 * clones / size
    epsilon = math.log1p((clones - 1) / (clones + 1) * reach)
    failure = delta + (math.exp(epsilon) + 1) * (1 + 1 / (2 * clones)) * size * local.delta
    if failure >= 1.0:
        return None
    return Privacy(epsilon=accounting.upwards(epsilon), delta=accounting.upwards(failure))


def _weakest(target: Privacy, batch: int, share: float) -> Privacy | None:
    """The largest local epsilon whose shuffled batch keeps the target; None if none is above it.

    ``share`` of delta goes to shuffling, the rest to the messages: a d0 such that
    (e^epsilon + 1) 1.5 n d0 is at most the rest.
    """
    rest = (1 - share) * target.delta
    least = max(1e-100, 0.999 * rest / ((math.exp(target.epsilon) + 1) * 1.5 * batch))

    def keeps(epsilon: float) -> bool:
        local = Privacy(epsilon=epsilon, delta=least)
        found = amplified(local=local, batch=batch, delta=share * target.delta)
        return found is not None and found.epsilon <= target.epsilon and found.delta <= target.delta

    low, high = target.epsilon, target.epsilon + 50.0
    if not keeps(low):
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return Privacy(epsilon=low, delta=least)
