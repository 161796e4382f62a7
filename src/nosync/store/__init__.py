"""Stores: named bytes on a disk or in an object store, and what their failures mean."""
