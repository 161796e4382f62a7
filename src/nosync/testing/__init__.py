"""The oracle: a view at an epoch is what Spark answers in batch over the input up to that epoch. For tests of nosync and of flows."""

from nosync.testing.batch import Batch
from nosync.testing.judge import judge
from nosync.testing.oracle import Change, Tables, check, fill
from nosync.testing.rows import difference

__all__ = ["Batch", "Change", "Tables", "check", "difference", "fill", "judge"]
