"""A private decision with an installed package, and no repository around."""

from importlib.resources import files

import numpy as np

import discreet

assert "site-packages" in discreet.__file__, discreet.__file__
assert files("discreet").joinpath("py.typed").is_file()
problem = discreet.Problem(dim=3, action_norm=1, reward_bound=1, theta_norm=1)
privacy = discreet.Privacy(epsilon=1.0, delta=1e-6)
bandit = discreet.LinUCB(problem, horizon=1_000, privacy=privacy, path="bandit.discreet")
decision = bandit.choose(np.eye(3))
bandit.learn(decision, 0.5)
bandit.close()
with discreet.load("bandit.discreet") as bandit:
    assert bandit.rows == 1
print("decided, learned, stored and loaded")
