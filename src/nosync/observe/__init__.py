"""What a flow looks like, for people: its graph in words and as a drawing, with the figures of a run."""
