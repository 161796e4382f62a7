"""The graph that a flow's queries become: operators, templates, traces, and what is known by walking it."""
