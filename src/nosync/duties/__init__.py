"""What runs behind the stream: syncing, shipping, releasing, trimming, merging. Each duty is a step; threads call it."""
