"""Values and pure rules: epochs, shards, layers, errors. Standard library only."""
