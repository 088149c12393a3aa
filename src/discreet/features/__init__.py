"""Contexts and actions as bounded rows: public maps that are never fitted to data.

A `FeatureMap` is a list of parts, written down before there is data. Each part reads values of the
context or of an action and makes a few coordinates; weights see to it that every row has norm at
most 1. See docs/features.md.
"""

from discreet.features._constructors import (
    action_id,
    category,
    cross,
    default,
    disjoint,
    hashed,
    intercept,
    numeric,
    projected,
    random_fourier,
)
from discreet.features._map import Explanation, FeatureMap

__all__ = [
    "Explanation",
    "FeatureMap",
    "action_id",
    "category",
    "cross",
    "default",
    "disjoint",
    "hashed",
    "intercept",
    "numeric",
    "projected",
    "random_fourier",
]
