"""Spark's own SQL tests as queries over tables that grow and shrink, against batch. Run by `python -m tests.spark_sql`."""
