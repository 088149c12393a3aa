"""Decision sets and rewards of the synthetic environments."""

import math

import numpy as np
from numpy.typing import NDArray

from discreet.kernels import random
from discreet.kernels.compiling import kernel

F64 = NDArray[np.float64]
U64 = NDArray[np.uint64]


@kernel
def sphere(
    state: U64, theta: F64, top: float, low: float, high: float, actions: F64, means: F64
) -> None:
    """One optimal unit vector at inner product ``top``, the others uniform on a band.

    Paper: section Experiments, Setting. Directions are normalised Gaussians; the few whose inner
    product with theta falls outside the band get a new inner product drawn inside it, which is
    exact because direction and inner product are independent. The optimal action's place is
    random.

    Shapes: theta (d,) of unit length, actions (d, K) feature-major, means (K,).
    """
    dim, count = actions.shape
    random.fill_normals(state, actions.reshape(dim * count))
    optimal = random.below(state, count)
    lengths = np.empty(count)
    for k in range(count):
        means[k] = 0.0
        lengths[k] = 0.0
    for i in range(dim):
        for k in range(count):
            means[k] += theta[i] * actions[i, k]
            lengths[k] += actions[i, k] * actions[i, k]
    along = np.empty(count)  # x = scale * g + along * theta, for the normals g
    for k in range(count):
        raw = means[k]
        scale = 1.0 / math.sqrt(lengths[k])
        wanted = raw * scale
        along[k] = 0.0
        if k == optimal or not low <= wanted <= high:
            wanted = top if k == optimal else band_product(state, dim, low, high)
            scale = math.sqrt((1.0 - wanted * wanted) / (lengths[k] - raw * raw))
            along[k] = wanted - scale * raw
        means[k] = wanted
        lengths[k] = scale
    for i in range(dim):
        for k in range(count):
            actions[i, k] = lengths[k] * actions[i, k] + along[k] * theta[i]


@kernel
def band_product(state: U64, dim: int, low: float, high: float) -> float:
    """An inner product with density (1 - z^2)^((d-3)/2) on [low, high], by rejection."""
    power = 0.5 * (dim - 3)
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    furthest = max(abs(low), abs(high))
    peak = nearest if power >= 0.0 else furthest
    ceiling = power * math.log(1.0 - peak * peak)
    while True:
        z = low + (high - low) * random.uniform(state)
        if math.log(random.uniform(state)) < power * math.log(1.0 - z * z) - ceiling:
            return z


@kernel
def reward(state: U64, mean: float, std: float, bound: float) -> float:
    """A reward with the given mean: plus or minus one if std is 0, else normal.

    A normal reward is clipped to [-bound, bound].
    """
    if std == 0.0:
        return 1.0 if random.uniform(state) < 0.5 * (1.0 + mean) else -1.0
    return min(max(mean + std * random.normal(state), -bound), bound)
