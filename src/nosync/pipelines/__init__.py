"""Spark Declarative Pipelines as one nosync flow."""
