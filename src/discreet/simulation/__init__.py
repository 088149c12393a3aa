"""Many rounds times many seeds in synthetic worlds (`environments`). Nobody's data comes here."""

from discreet.simulation._simulate import Outcome, Simulation, release_after, run_seed, simulate

__all__ = ["Outcome", "Simulation", "release_after", "run_seed", "simulate"]
