"""Layers between hosts: a server on each, and who asks whom."""
