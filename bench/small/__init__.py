"""What an epoch of 1,000 rows costs, from one filter to thirty views side by side."""
