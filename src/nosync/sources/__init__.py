"""Ways in: one file a connector."""
