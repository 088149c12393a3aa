"""What the authors published, for comparison. Our own figures are never taken from here.

Source: Roshan Shariff and Or Sheffet, "Differentially Private Contextual Linear Bandits",
NeurIPS 2018, arXiv:1810.00068, section "Experiments", and the authors' public code for it.
Plateaus are read off the printed curves and are rough. docs/errata.md, E8, says where that code
differs from the text.
"""

EPSILON, DELTA = 1.0, 0.1
HORIZON = 50_000_000  # sec:expt-regret-time
SHOWN = 20_000_000  # where the paper cuts its curves off

# fig:expt1-regret-vs-d, the best-fit lines: (factor, exponent) of factor * d ** exponent.
DIMENSION_FITS = {"signs": (2.437, 1.988), "gaussian": (4.704, 1.85)}

# fig:expt2-regret-time: pseudo-regret where the curves end, by gap and variant.
PLATEAUS = {
    0.0: {"gaussian": 14_000.0, "wishart": 97_000.0, "wishart-unshifted": 250_000.0},
    0.1: {"gaussian": 12_000.0, "wishart": 80_000.0, "wishart-unshifted": 87_000.0},
}

# What the authors' code reports as the lower bounds of its regularizers.
RHO_MIN = {
    "gaussian": 92_208.7,
    "gaussian-opt": 71_629.3,
    "wishart": 222_336.0,
    "wishart-unshifted": 12_810_100.0,
    "wishart-opt": 207_393.0,
}
