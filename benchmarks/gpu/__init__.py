"""The simulator on a GPU: does it agree with the processor, and how fast is it? See docs/gpu.md."""
