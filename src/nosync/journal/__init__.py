"""The append-only record of a flow: epochs opened and computed, layers placed."""
