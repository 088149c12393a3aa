"""Multi-armed bandits: arms without features, rewards in [-1, 1], pure differential privacy.

`UCB1` promises nothing. `DPUCB` and `DPSE` are epsilon-differentially private; they are here
because they can be held against the paper's lower bounds (`discreet.theory`). Each learner has
``choose() -> arm`` and ``learn(arm, reward)``; `simulate` plays their rules, with the same
compiled steps, many times over.
"""

from discreet.baselines._elimination import DPSE, Elimination
from discreet.baselines._simulate import Arms, Outcome, simulate
from discreet.baselines._ucb import DPUCB, UCB1, UpperConfidence

__all__ = [
    "DPSE",
    "DPUCB",
    "UCB1",
    "Arms",
    "Elimination",
    "Outcome",
    "UpperConfidence",
    "simulate",
]
