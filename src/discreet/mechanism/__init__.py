"""A learner's noise as data: what is drawn, when, how it is shared, and how much of it.

`Mechanism` holds the choices. `schedules` say when there is a release, `strategies` how noise is
shared between releases, `noise` what is drawn, `variants` names whole rows of choices, `planning`
says what follows from them before any data. Nothing here holds or sees a row.
"""

from discreet.mechanism._confidence import JointWidth, PaperConfidence
from discreet.mechanism._mechanism import Mechanism, NodeNoise
from discreet.problem import Setting
from discreet.theory import NoiseBounds

__all__ = ["JointWidth", "Mechanism", "NodeNoise", "NoiseBounds", "PaperConfidence", "Setting"]
