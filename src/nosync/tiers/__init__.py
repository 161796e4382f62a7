"""Tiers: what is on the host and on the remote, and what brings it there."""
