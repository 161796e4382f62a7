"""The only place that speaks to Spark's JVM: sessions, plans and expressions, in and out."""
