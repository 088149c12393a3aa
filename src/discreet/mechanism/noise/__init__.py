"""Node noise: how it is calibrated, bounded and drawn. No row of data ever comes here.

Each family has the same shape: a frozen dataclass with ``calibrated``, ``eigenvalues``,
``bounds``, ``draw`` and ``describe``, and the paper's choice of shift beside it.
"""
