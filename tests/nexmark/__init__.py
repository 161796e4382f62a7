"""Nexmark, and a process of its own that runs it, to be killed."""
