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

    Paper: section Experiments, Setting. Actions are normalised Gaussians, and those that fall
    outside the band are drawn again. The optimal action's place is random.

    Shapes: theta (d,) of unit length, actions (d, K) feature-major, means (K,).
    """
    dim, count = actions.shape
    random.fill_normals(state, actions.reshape(dim * count))
    optimal = random.below(state, count)
    scales = np.empty(count)
    for k in range(count):
        means[k] = 0.0
        scales[k] = 0.0
    for i in range(dim):
        weight = theta[i]
        for k in range(count):
            means[k] += weight * actions[i, k]
            scales[k] += actions[i, k] * actions[i, k]
    for k in range(count):
        scales[k] = 1.0 / math.sqrt(scales[k])
        means[k] *= scales[k]
    for i in range(dim):
        for k in range(count):
            actions[i, k] *= scales[k]
    for k in range(count):
        if not low <= means[k] <= high and k != optimal:
            means[k] = _into_band(state, theta, low, high, actions[:, k])
    means[optimal] = _turn(state, theta, means[optimal], top, actions[:, optimal])


@kernel
def _into_band(state: U64, theta: F64, low: float, high: float, action: F64) -> float:
    """A fresh unit vector uniform on the band, and its inner product with theta.

    A few draws hit a wide band; for a narrow one the inner product is drawn by itself, which is
    as exact because inner product and direction are independent.
    """
    product = 0.0
    for _ in range(8):
        product = _unit_vector(state, theta, action)
        if low <= product <= high:
            return product
    return _turn(state, theta, product, band_product(state, theta.size, low, high), action)


@kernel
def _turn(state: U64, theta: F64, product: float, wanted: float, action: F64) -> float:
    """Turn a unit vector towards or away from theta until its inner product is as wanted."""
    # A vector almost parallel to theta has no direction of its own left to keep.
    while 1.0 - product * product < 1e-2:  # noqa: PLR2004
        product = _unit_vector(state, theta, action)
    scale = math.sqrt((1.0 - wanted * wanted) / (1.0 - product * product))
    along = wanted - scale * product
    for i in range(theta.size):
        action[i] = scale * action[i] + along * theta[i]
    return wanted


@kernel
def _unit_vector(state: U64, theta: F64, action: F64) -> float:
    """Replace an action by a random unit vector; its inner product with theta."""
    product = 0.0
    square = 0.0
    for i in range(theta.size):
        action[i] = random.normal(state)
        product += theta[i] * action[i]
        square += action[i] * action[i]
    scale = 1.0 / math.sqrt(square)
    for i in range(theta.size):
        action[i] *= scale
    return product * scale


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
