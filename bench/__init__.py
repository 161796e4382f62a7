"""Figures against Spark Structured Streaming on the same files: `python -m bench` from the root of the repository."""
