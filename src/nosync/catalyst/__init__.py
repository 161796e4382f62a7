"""The only place that reads and rebuilds Spark's plans."""
