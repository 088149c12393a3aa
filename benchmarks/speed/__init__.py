"""How fast discreet is, measured in one run on one machine, beside what one would use instead.

A section measures one thing and returns its rows, its notes and a few named figures; `bars` holds
the figures against what the project promised. Nothing here looks
behind the learner: it is measured as a user calls it. `make bench` runs it.
"""
