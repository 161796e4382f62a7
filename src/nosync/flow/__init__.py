"""What the user touches: Flow, fold, names in SQL."""
