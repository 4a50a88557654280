"""A run: its name, its keys in Redis, its configuration, its books."""
