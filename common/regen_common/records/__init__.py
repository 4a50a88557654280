"""A record: one output line, and the labels that say what is wrong with its answer."""
