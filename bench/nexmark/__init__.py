"""Nexmark: an auction's persons, auctions and bids, and 23 queries over them; our own generator, beside Spark Structured Streaming."""
