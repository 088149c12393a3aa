"""What a policy is offered of a decision set, and what it picks: ``among`` and ``exclude``."""

import operator
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import EmptyDecisionSetError, OutOfBoundsError, ParameterError, ShapeError
from discreet.release._release import Release
from discreet.release.policies import Choice, Policy, PosteriorUCB

_F64 = NDArray[np.float64]

A_POLICY = "PosteriorUCB(), UCB(), Thompson() or greedy()"  # what messages suggest

_MANY = 16  # sets, from which on it pays to look at them together

Some = ArrayLike | AbstractSet[int]
"""Places in a decision set, or a mask with True or False for each action."""

Places = NDArray[np.intp] | None
"""Of the actions that are on offer, in order; None for all of them."""


def offered(count: int, among: Some | None, exclude: Some | None) -> Places:
    """The places that are left of a decision set.

    Args:
        count: how many actions the set has.
        among: those that may be chosen; all if None.
        exclude: those that may not be chosen; none if None.

    Returns:
        Places in ascending order, whatever the order in which they were named.

    Raises:
        EmptyDecisionSetError: Nothing is left.
        OutOfBoundsError: A place is not in the set.
        ParameterError: A place is named twice.
        ShapeError: Neither places nor a mask were given.
    """
    if among is None and exclude is None:
        return None
    left = np.ones(count, dtype=np.bool_) if among is None else _mask("among", among, count)
    if exclude is not None:
        left &= ~_mask("exclude", exclude, count)
    places = left.nonzero()[0]
    if not places.size:
        raise EmptyDecisionSetError(
            "among" if exclude is None else "exclude",
            "leaves no action to choose; leave at least one on offer",
        )
    return places


def offered_in_each(
    counts: Sequence[int],
    among: Sequence[Some | None] | None,
    exclude: Sequence[Some | None] | None,
) -> list[Places]:
    """`offered` for several decision sets.

    Args:
        counts: how many actions each has.
        among: as for `offered`, an entry for each set; None for no restriction at all.
        exclude: the same.

    Returns:
        Places for each set.

    Raises:
        ShapeError: There are not as many entries as sets.
    """
    for name, given in (("among", among), ("exclude", exclude)):
        if given is not None and (not isinstance(given, list | tuple) or len(given) != len(counts)):
            raise ShapeError(
                name, f"is not a list with an entry for each of the {len(counts)} decision sets"
            )
    only = repeat(None) if among is None else among
    without = repeat(None) if exclude is None else exclude
    return [offered(*one) for one in zip(counts, only, without, strict=False)]


def _mask(name: str, given: Some, count: int) -> NDArray[np.bool_]:
    """True at the places that were named, or the mask that was given."""
    try:
        found = np.asarray(list(given) if isinstance(given, AbstractSet) else given)
    except (TypeError, ValueError):
        found = np.empty(0, dtype=object)
    if found.ndim == 1 and found.dtype == np.bool_:
        if len(found) != count:
            raise ShapeError(
                name, f"is a mask of {len(found)} entries for {count} actions; give one for each"
            )
        return found.copy()
    mask = np.zeros(count, dtype=np.bool_)
    if found.shape == (0,) and found.dtype != object:
        return mask
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ShapeError(
            name,
            "is neither a list of places in the decision set, counted from 0, nor a mask with True "
            "or False for each action",
        )
    if int(found.min()) < 0 or int(found.max()) >= count:
        raise OutOfBoundsError(
            name, f"names a place that is not among the {count} actions, which count from 0"
        )
    mask[found] = True
    if int(mask.sum()) != len(found):
        raise ParameterError(name, "names a place twice; give each place once")
    return mask


def picked(policy: Policy, release: Release, actions: _F64, places: Places) -> Choice:
    """What a policy picks of a decision set. It sees what is on offer and nothing else.

    Args:
        policy: the rule.
        release: what it knows.
        actions: the whole decision set, shape (K, d).
        places: which of them are on offer.

    Returns:
        The place in the whole set, and the probability among those on offer.

    Raises:
        ParameterError: The policy picked nothing that was on offer.
    """
    seen = actions
    if places is not None:
        seen = actions[places]
        seen.setflags(write=False)
    found: object = policy.choose(release, seen)
    probability = None
    if isinstance(found, Choice):
        found, probability = found
    index = found if type(found) is int else _index(found)
    if not 0 <= index < len(seen):
        raise ParameterError(
            "policy",
            "chose no action of the decision set; let its choose() return an index or a Choice",
        )
    return Choice(index if places is None else places.item(index), probability)


def picked_of_each(
    policy: Policy, release: Release, sets: Sequence[_F64], places: Sequence[Places] | None
) -> list[Choice]:
    """`picked` of several decision sets; the default policy looks at all of one size together.

    Args:
        policy: the rule.
        release: what it knows.
        sets: whole decision sets, shape (K, d) each.
        places: which of their actions are on offer; None for all of all.

    Returns:
        A choice for each.
    """
    if places is not None:
        each = zip(sets, places, strict=True)
        return [picked(policy, release, actions, some) for actions, some in each]
    if type(policy) is PosteriorUCB and len(sets) >= _MANY and len({*map(len, sets)}) == 1:
        return policy.choose_each(
            release, np.concatenate(sets).reshape(len(sets), -1, sets[0].shape[1])
        )
    return [picked(policy, release, actions, None) for actions in sets]


def _index(found: object) -> int:
    """What a policy returned, as a whole number; -1 if it is none."""
    try:
        return -1 if isinstance(found, bool) else operator.index(found)  # type: ignore[arg-type]  # what is no index is a TypeError
    except TypeError:
        return -1
