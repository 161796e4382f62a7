"""From Spark's optimised plan to the graph: rewrites of the plan first, then one rule for each kind of plan node."""
