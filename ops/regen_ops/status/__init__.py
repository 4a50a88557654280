"""The status of a run: read once, put into one frozen Report, shown as text or JSON."""
