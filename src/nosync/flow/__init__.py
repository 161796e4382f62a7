"""What the user touches: Flow, sources, views."""
