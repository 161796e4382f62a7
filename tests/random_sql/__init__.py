"""Random SQL over random tables whose rows come and go, held against Spark's batch answer; what fails is shrunk and printed."""
