"""Starting in phases, the epoch loop, and taking over a changed program."""
