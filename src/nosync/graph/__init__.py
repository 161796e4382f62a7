"""The graph that a flow's queries become: operators, templates, traces, and what can be told by walking it."""
