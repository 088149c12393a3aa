"""Many rounds times many seeds in synthetic worlds (`environments`). Nobody's data comes here."""

from discreet.simulation._simulate import Outcome, Simulation, run_seed, simulate

__all__ = ["Outcome", "Simulation", "run_seed", "simulate"]
