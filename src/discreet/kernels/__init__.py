"""The arithmetic, compiled once and used everywhere.

The learner calls these functions one round at a time and the simulator calls them in a loop,
so what is measured over many rounds is what a user runs. Kernels take and fill plain arrays;
they know nothing of privacy, problems or people.

Matrices here come in two layouts. A *packed* vector of length d(d+3)/2 holds the lower triangle
of the augmented Gram matrix of the rows (x, y), row by row, without its last entry: first the
Gram matrix of the actions, then the moment vector. Decision sets are *feature-major*, d x K, so
that a loop over the actions is a loop over neighbouring numbers.
"""
