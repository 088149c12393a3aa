"""Linear bandits: a decision set of feature vectors in every round.

A *rule* is an algorithm with its settings, as data. `LinearLearner` follows it and
`simulate_linear` plays it, with the same compiled steps.
"""
