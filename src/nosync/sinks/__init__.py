"""Ways out: one file a connector."""
