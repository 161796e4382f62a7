"""Pure functions from state and change to new state and output. No Spark, no I/O."""
