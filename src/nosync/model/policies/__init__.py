"""Ways of protecting state, one file each, and the table of them. See `nosync.model.policy`."""
