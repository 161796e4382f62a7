"""A live auction on one machine: `python -m nosync.demo`."""
