"""Private personalisation over HTTP: `discreet serve`.

Two kinds of processes share a database. *Rankers* answer HTTP: they decide from published releases,
write down what was decided, and take in rewards; they never import the curator. One *writer* closes
each event at its deadline, hands its row to the learner, and publishes the learner's releases. See
docs/service.md; it needs the extra ``discreet[serve]``.
"""
