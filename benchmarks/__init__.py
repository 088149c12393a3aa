"""Measured, not shipped: `speed` is about the whole package, `kernels.py` about single kernels."""
