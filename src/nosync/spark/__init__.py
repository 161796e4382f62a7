"""Sessions, epoch jobs, tasks and receipts."""
