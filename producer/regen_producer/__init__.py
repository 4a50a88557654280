"""From input files to prompts in the store, and from there to jobs in the queues."""
