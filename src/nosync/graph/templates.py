"""Templates: pieces of Spark's plan with holes where the changes of nodes go.

Filled with the changes of an epoch, a template is a plan that Spark runs. Made by the compiler's rules, filled by the epoch's job.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Catalyst, Java
from nosync.model.watermark import Moment

if TYPE_CHECKING:
    from nosync.graph.nodes import Node


@dataclass(eq=False, slots=True)
class Hole:
    """Where the change of a node goes: its columns take the place of these attributes, one by one."""

    node: "Node"
    attributes: list[Java]


@dataclass(eq=False, slots=True)
class Branch:
    """A node of Spark's plan over other pieces."""

    plan: Java
    children: list["Piece"]

    def filled(self, catalyst: Catalyst, below: list[Java], moment: Moment) -> Java:
        """The plan over its children's."""
        return catalyst.with_children(self.plan, below)


Piece = Hole | Branch


@dataclass(eq=False, slots=True)
class Template:
    """A stateless piece of a plan. `sharded`: its rows still lie where their `_hash` put them, and carry it.

    `fingerprint` says what it computes, with its columns in their order, `rows` which rows these are whatever their columns.
    """

    piece: Piece
    output: list[Java]
    carried: list[Java]
    append_only: bool
    fingerprint: str = ""
    rows: str = ""

    @property
    def sharded(self) -> bool:
        return len(self.carried) == 2

    def under(self, plan: Java, output: list[Java] | None = None) -> "Template":
        """With one more node of Spark's plan on top, which passes on what is carried; the columns are the same unless given."""
        return Template(Branch(plan, [self.piece]), self.output if output is None else output, self.carried, self.append_only)


def holes(piece: Piece) -> Iterator[Hole]:
    """The holes of a template, left to right."""
    if isinstance(piece, Hole):
        yield piece
    else:
        for child in piece.children:
            yield from holes(child)
