"""A real standalone cluster on this machine, each of its hosts in a network of its own. See `faults` for what happens to it."""
