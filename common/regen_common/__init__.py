"""What at least two of producer, consumer, sink and ops share, by noun."""

__version__ = "0.1.0"
