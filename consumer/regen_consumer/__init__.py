"""One consumer process per GPU, and, in its own sub-package, the sink."""
