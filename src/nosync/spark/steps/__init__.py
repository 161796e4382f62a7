"""How each kind of operator runs within an epoch's job: rows to their shards, the kernel's task, the change. One kind a file."""
