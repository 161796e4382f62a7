"""Reading any kept epoch, with and without Spark."""
