"""From the results stream to the destination, exactly once. Imports nothing of the consumer."""
