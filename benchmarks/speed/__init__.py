"""How fast discreet is, measured in one run on one machine, beside what one would use instead.

A section measures one thing and returns its rows, its notes and a few named figures; `results`
holds the figures against what the project promised. `simulation` has the sections on simulators,
`calls` those on a learner in memory, `store` the one on stored learners, `libraries` the one on
other bandit libraries. Nothing here looks behind the learner: it is measured as a user calls it.
`make bench` runs it.
"""
