"""Spark looks for data sources in packages whose names begin like this one's: so `spark.read.format("nosync")` works in any session."""

from nosync.spark.data_source import NosyncDataSource


class DefaultSource(NosyncDataSource):
    """Under the name `nosync`."""
