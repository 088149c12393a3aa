"""The simulator on a GPU: many seeds of many settings at once. See docs/gpu.md.

`rounds.cu` plays; `_plan` says what to play in tables; `_batch` holds what is under way on the
device; `_runtime` is the only module that talks to it. Nothing outside `simulation` knows of CUDA.
"""
