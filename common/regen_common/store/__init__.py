"""The prompt store: every input row after normalisation, rejected rows too, by index."""
