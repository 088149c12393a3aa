"""What a bandit is made of, as it was asked for: features, mechanism, policy. All public."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from discreet import features as feature_maps
from discreet.errors import DiscreetError, ParameterError
from discreet.features import FeatureMap
from discreet.mechanism import Mechanism, variants
from discreet.privacy import Privacy
from discreet.problem import Problem
from discreet.release import Release, policies
from discreet.service._bodies import BanditSpec, RewardRule, ServiceError

_MOST_FEATURES = 1024


def read_spec(document: bytes) -> BanditSpec:
    """The specification as it is stored."""
    return msgspec.json.decode(document, type=BanditSpec)


def features_of(spec: BanditSpec) -> FeatureMap:
    """The feature map of a specification, or the default one."""
    if spec.features is None:
        return feature_maps.default()
    return FeatureMap.from_json(spec.features)


def checked(spec: BanditSpec) -> tuple[BanditSpec, Release]:
    """A specification with everything filled in, and the release that everything starts from.

    Args:
        spec: what was asked for.

    Returns:
        The same with features, policy and theta_norm written out, and release number 0.

    Raises:
        ServiceError: it cannot be; the message names the field.
    """
    try:
        _require_reward(spec.reward)
        rows = features_of(spec)
        if rows.dim > _MOST_FEATURES:
            raise ParameterError(
                "features", f"has {rows.dim} coordinates; give at most {_MOST_FEATURES}"
            )
        span = spec.reward.high - spec.reward.low
        theta_norm = span if spec.theta_norm is None else spec.theta_norm
        problem = Problem.between(
            spec.reward.low,
            spec.reward.high,
            dim=rows.dim,
            action_norm=1.0,
            theta_norm=theta_norm,
            blocks=rows.blocks,
            features=rows.digest,
        )
        mechanism = variants.calibrate(
            "windows",
            problem,
            horizon=spec.horizon,
            privacy=Privacy(
                epsilon=spec.epsilon,
                delta=spec.delta,
                contributions_per_user=spec.contributions_per_user,
                protects=spec.protects,
            ),
            noise="exact",
            memory=spec.memory,
        )
        policy = policy_of(spec, mechanism)
    except DiscreetError as error:
        raise ServiceError(400, "BadRequest", str(error)) from None
    full = msgspec.structs.replace(
        spec, features=rows.to_json(), policy=policy, theta_norm=theta_norm
    )
    return full, first_release(mechanism)


def _require_reward(rule: RewardRule) -> None:
    if not rule.low < rule.high:
        raise ParameterError("reward", "low must be below high")
    if not rule.low <= rule.default <= rule.high:
        raise ParameterError("reward", "default must be from low to high")


def policy_of(spec: BanditSpec, mechanism: Mechanism) -> dict[str, Any]:
    """The policy as JSON: the one that was asked for, if it says how probable its choices are."""
    try:
        found = policies.settled(policies.from_json(spec.policy), mechanism)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        found = None
    entry = None if found is None else policies.to_json(found)
    if entry is None or not hasattr(found, "probabilities"):
        raise ParameterError(
            "policy",
            'must be {"rule": "posterior"} or {"rule": "ucb"}, with their numbers if need be',
        )
    return entry


def policy_from(entry: Mapping[str, Any]) -> policies.Policy:
    """The policy of a stored entry."""
    found = policies.from_json(dict(entry))
    if found is None:
        raise ParameterError("policy", "is missing")
    return found


def first_release(mechanism: Mechanism) -> Release:
    """What is known before any row: nothing but the mechanism."""
    dim = mechanism.setting.problem.dim
    return Release(
        number=0,
        rows=0,
        gram=mechanism.shift * np.eye(dim),
        moment=np.zeros(dim),
        spread=0.0,
        weight=0.0,
        mechanism=mechanism,
    )
