"""Places where layers and journal live, and what carries them there behind the stream."""
