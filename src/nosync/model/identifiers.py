"""What things are known by. Distinct types, so that none can be passed for another; at run time they are plain values."""

from typing import NewType

TraceName = NewType("TraceName", str)
"""The name under which an operator or a view keeps state: unique in a home, never used again for anything else."""

TraceShard = tuple[TraceName, int]
"""A trace's part in one shard."""
