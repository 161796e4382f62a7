"""Talking to servers of others: what sources and sinks of one server share."""
