"""A query as a tree. Every node gives the same four columns, k bigint, v double, t string and d decimal(9,2), so any node can stand in
for any other: that is what makes growing and shrinking simple.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Node:
    """`form` is SQL with {0}, {1} for the inputs and names in braces for slots; a slot has a text and the plainest it could have."""

    form: str
    inputs: tuple["Node", ...] = ()
    slots: tuple[tuple[str, str, str], ...] = ()

    @property
    def sql(self) -> str:
        return self.form.format(*(node.sql for node in self.inputs), **{name: text for name, text, _ in self.slots})

    @property
    def size(self) -> int:
        return 1 + sum(node.size for node in self.inputs) + sum(text != plain for _, text, plain in self.slots)

    def smaller(self) -> Iterator["Node"]:
        """Trees with one piece less, the boldest cuts first."""
        for node in self.inputs:
            yield from ([node, *_leaves(node)] if node.inputs else [node])
        for place, node in enumerate(self.inputs):
            for other in node.smaller():
                yield replace(self, inputs=(*self.inputs[:place], other, *self.inputs[place + 1 :]))
        for place, (name, text, plain) in enumerate(self.slots):
            if text != plain:
                yield replace(self, slots=(*self.slots[:place], (name, plain, plain), *self.slots[place + 1 :]))


def _leaves(node: Node) -> list[Node]:
    return list(dict.fromkeys(leaf for below in node.inputs for leaf in (_leaves(below) if below.inputs else [below])))
