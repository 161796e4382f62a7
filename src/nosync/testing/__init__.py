"""The oracle and random inputs, for tests of flows."""
