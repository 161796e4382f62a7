"""One rule a file: how a kind of node of Spark's plan becomes part of the graph."""
