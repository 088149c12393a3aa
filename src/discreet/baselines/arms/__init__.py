"""Multi-armed bandits: arms without features, rewards in [-1, 1], pure differential privacy.

A *rule* is an algorithm with its settings, as data. A learner follows it and `simulate` plays it,
with the same compiled steps.
"""
