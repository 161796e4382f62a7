"""The 22 queries of TPC-H over eight tables that grow and shrink: our own generator, histories of changes, and a command that compares."""
