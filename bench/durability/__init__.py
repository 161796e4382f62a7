"""What durability costs, and what it buys: `python -m bench.durability`."""
