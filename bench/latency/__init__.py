"""How soon rows are seen while the load jumps by ten and back, by kind of trigger."""
