"""Coming back after a failure: look what is there, decide what is missing, fetch or recompute only that."""
