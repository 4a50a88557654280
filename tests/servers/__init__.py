"""Real servers that tests start, each on free loopback ports with its own data folder."""
