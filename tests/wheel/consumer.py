"""A program that uses the package, for a type checker that sees only what is installed."""

import numpy as np

import discreet
from discreet import features

rows: features.FeatureMap = features.FeatureMap([features.action_id(["a", "b"])])
problem = discreet.Problem.between(0, 1, dim=rows.dim, action_norm=1, theta_norm=1)
privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
bandit: discreet.LinUCB = discreet.LinUCB(problem, horizon=None, privacy=privacy)
decision: discreet.Decision = bandit.choose(np.eye(2))
index: int = decision.index
release: discreet.Release = bandit.release
