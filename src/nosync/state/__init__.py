"""Layers, search, merging, covers: log-structured columnar state over Arrow and numpy. No Spark."""
