"""How a user writes the parts of a map."""

from collections.abc import Sequence

from discreet.features._combined import Cross, RandomFourier
from discreet.features._map import FeatureMap
from discreet.features._parts import Category, Hashed, Intercept, Numeric, Projected
from discreet.features._rows import ACTION, CONTEXT, Part, checked_count

_INNER_BUCKETS = 2**20  # of what is crossed in the default map: rows there are sparse
_DIGITS = 3
_SMALLEST_DEFAULT = 8


def intercept(*, weight: float = 1.0) -> Part:
    """The number 1 for everybody: what all rewards have in common.

    Args:
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: The weight is out of range.
    """
    return Intercept(weight=weight)


def numeric(
    path: str,
    low: float,
    high: float,
    knots: int | Sequence[float] | None = None,
    *,
    weight: float = 1.0,
) -> Part:
    """A number between two public bounds.

    Without knots it is one coordinate, from -1 at ``low`` to 1 at ``high``. With knots there is one
    coordinate for each, and a number is divided between the two knots around it, so that the model
    is a line from knot to knot. What is outside the bounds is clipped to them, and counted.

    Args:
        path: where the number is, such as context.age.
        low: the lower end of the scale.
        high: the upper end.
        knots: how many knots, evenly spaced from ``low`` to ``high``; or those between the two.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: A number is out of range; it names which.
    """
    return Numeric(path=path, low=low, high=high, knots=knots, weight=weight)  # type: ignore[arg-type]  # it takes a sequence and makes a tuple


def category(
    path: str, values: Sequence[object], *, other: bool = False, weight: float = 1.0
) -> Part:
    """One coordinate for each of a few known values.

    Values are compared as text, so that 3, 3.0 and "3" are the same. A list of values has a
    coordinate for each, with a norm of 1 together. Unknown values have none, and are counted.

    Args:
        path: where the value is, such as context.device.
        values: the values that have a coordinate. Write them down; do not collect them from data.
        other: whether there is one more coordinate for all other values.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: The path is none, or a value is twice there or not a single value.
    """
    return Category(path=path, values=values, other=other, weight=weight)  # type: ignore[arg-type]  # it takes a sequence and makes a tuple


def action_id(ids: Sequence[object], *, weight: float = 1.0) -> Part:
    """One coordinate for each of the known actions: ``category("action.id", ids)``.

    An action with another id has zeros here, and is counted.

    Args:
        ids: the ids, compared as text.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: An id is twice there, or is neither text nor a number.
    """
    return category(f"{ACTION}.id", ids, weight=weight)


def hashed(path: str, buckets: int, *, digits: int | None = None, weight: float = 1.0) -> Part:
    """Text of any kind in a fixed number of buckets, with signs.

    Bucket and sign are public and the same everywhere: they follow from the path and the text
    (BLAKE2b). A list or a set is a bag of words. A dictionary, or the whole context or action (with
    the path ``context`` or ``action``), is a bag of ``name=value``. Signed counts are scaled to
    norm 1. Two texts in one bucket are told apart less well; privacy does not depend on it.

    Args:
        path: where the text is, such as action.tags.
        buckets: how many coordinates.
        digits: how many significant binary digits of a number count, so that numbers that are
            close share a bucket; all if None, as is right for numbers that are names.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: The path is none, or a number is out of range.
    """
    return Hashed(path=path, buckets=buckets, digits=digits, weight=weight)


def cross(a: Part, b: Part, buckets: int | None = None, *, weight: float = 1.0) -> Part:
    """Every product of a coordinate of one part with one of another.

    With buckets, products are added up in that many coordinates with public signs, and the result
    is shortened to norm 1 if it is longer. What is crossed may then have millions of buckets.

    Args:
        a: one part, without a weight.
        b: the other part, without a weight.
        buckets: how many coordinates; one for each product if None.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: These are no parts, have weights, or a number is out of range.
    """
    return Cross(a=a, b=b, buckets=buckets, weight=weight)


def random_fourier(
    of: Part | Sequence[Part], count: int, *, scale: float, seed: int, weight: float = 1.0
) -> Part:
    """Random waves over other parts: a linear model of them is close to one with a Gaussian kernel.

    ``exp(-distance^2 / (2 scale^2))`` is that kernel, on the coordinates of the parts (Rahimi and
    Recht 2007). There are a cosine and a sine for each frequency, with norm 1 together. Where
    something is missing or unknown, all are zero.

    Args:
        of: the part, or parts, whose coordinates are the points; without weights.
        count: how many frequencies; there are twice as many coordinates.
        scale: the distance over which the model is smooth; `numeric` parts go from -1 to 1.
        seed: which frequencies. It is public, and part of the specification.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: These are no parts, have weights, or a number is out of range.
    """
    return RandomFourier(of=of, count=count, scale=scale, seed=seed, weight=weight)  # type: ignore[arg-type]  # it takes a sequence and makes a tuple


def projected(path: str, dim_in: int, dim_out: int, *, seed: int, weight: float = 1.0) -> Part:
    """A public embedding in fewer dimensions, by a public random map.

    The embedding (a list of ``dim_in`` numbers) is shortened to norm 1 if it is longer, which is
    counted. The map has orthonormal columns and is scaled by sqrt(dim_in/dim_out), so that lengths
    stay as they are on average; where the result is longer than 1 it is shortened.

    Args:
        path: where the embedding is, such as action.embedding.
        dim_in: how many numbers it has.
        dim_out: how many coordinates are left.
        seed: which map. It is public, and part of the specification.
        weight: how much of the norm this part may take, beside the other parts' weights.

    Returns:
        A part of a map.

    Raises:
        ParameterError: The path is none, or a number is out of range.
    """
    return Projected(path=path, dim_in=dim_in, dim_out=dim_out, seed=seed, weight=weight)


def disjoint(parts: Sequence[Part], *, actions: Sequence[object]) -> FeatureMap:
    """A map with coordinates of its own for each action: a model for each, which share nothing.

    ``map.blocks`` says so to the learner, whose estimate is better for it. An action with another
    id has no model, and is an error.

    Args:
        parts: what each action's model sees.
        actions: the ids of the actions, compared as text.

    Returns:
        The map.

    Raises:
        ParameterError: There is no part, or no action, or there are too many coordinates.
    """
    return FeatureMap(parts, actions)  # type: ignore[arg-type]  # it takes a sequence and makes a tuple


def default(dim: int = 32, *, actions: Sequence[object] | None = None) -> FeatureMap:
    """A map for any context and any actions, with nothing specified.

    An intercept; the action, by its id and features; and every token of the context with every one
    of the action, hashed. Numbers count to three binary digits: 37 is as 32 to 39. A map that
    is made for the problem is better: numbers on a scale, and no two values in one bucket.

    Args:
        dim: how many coordinates, at least 8.
        actions: the ids of the actions, if they are few and known. Each then has a coordinate of
            its own, and is crossed with the context by its id alone.

    Returns:
        The map.

    Raises:
        ParameterError: There are too few coordinates.
    """
    size = checked_count("dim", dim, _SMALLEST_DEFAULT, 65536)
    person = hashed(CONTEXT, _INNER_BUCKETS, digits=_DIGITS)
    if actions is None:
        main, other = (size - 1) // 4, hashed(ACTION, _INNER_BUCKETS, digits=_DIGITS)
        action = hashed(ACTION, main, digits=_DIGITS)
    else:
        action = other = action_id(actions)
        main = other.size
    checked_count("dim", size, 2 + main, 65536)
    return FeatureMap([intercept(), action, cross(person, other, size - 1 - main)])
