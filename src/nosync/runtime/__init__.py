"""The epoch loop and what runs behind it."""
