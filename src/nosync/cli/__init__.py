"""The `nosync` command."""
