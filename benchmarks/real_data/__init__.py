"""How good the learner is on real data, and how often its intervals hold the truth.

`insurance` starts learners from rows of the RAND health insurance experiment and evaluates what
they would do with people who were held out. `cancer` lets them play on breast cancer records.
`coverage` counts how often Bayesian intervals hold the mean reward. Everything is played by the
library as a user calls it; nothing of its arithmetic is repeated here. `make real-data` runs it.
"""
