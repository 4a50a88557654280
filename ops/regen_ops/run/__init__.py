"""``regen-run``: the whole of Regen on one machine, started as processes."""
