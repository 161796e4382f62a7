"""Coming from a checkpoint of Structured Streaming: `nosync import`."""
