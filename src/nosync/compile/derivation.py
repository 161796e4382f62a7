"""Columns of a view by those of an earlier one of the same rows: what is among them is taken from there, and what is computed of such is
computed anew. So a view that gets one more column need not be made from its input again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.compile.fingerprint import Plans
from nosync.graph.nodes import Derived

OUTPUTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
ITSELF = "Literal"  # of expressions without others below: the only one that says the same anywhere
ONLY_WHOLE = ("AggregateExpression", "WindowExpression")  # what they are computed among is not there any more


def derived(catalyst: Catalyst, plans: Plans, plan: Java, marks: Mapping[str, int]) -> Derived | None:
    """The columns of a view, whose whole query the plan is, over those with these marks, whose places are given; None where they do not
    suffice.
    """
    plan = catalyst.read(plan)
    outputs = items(getattr(plan, OUTPUTS[kind(plan)])()) if kind(plan) in OUTPUTS else items(plan.output())
    found = _Derivation(catalyst, plans, plan, marks)
    columns = [found.derived(output) for output in outputs]
    known = [column for column in columns if column is not None]
    return Derived(tuple(known), found.inputs) if len(known) == len(columns) else None


@dataclass
class _Derivation:
    """One under way. `inputs`: what stands for the earlier columns, by their places."""

    catalyst: Catalyst
    plans: Plans
    plan: Java
    marks: Mapping[str, int]
    inputs: dict[int, Java] = field(default_factory=dict)

    def derived(self, expression: Java) -> Java | None:
        place = self.marks.get(self.plans.part(expression, self.plan))
        if place is not None:
            return self._input(place, expression)
        below = children(expression)
        if kind(expression) in ONLY_WHOLE or not expression.deterministic() or not (below or kind(expression) == ITSELF):
            return None
        parts = [self.derived(one) for one in below]
        if kind(expression) == "Alias" or not below:
            return parts[0] if parts else expression
        return self.catalyst.with_children(expression, parts) if all(part is not None for part in parts) else None

    def _input(self, place: int, expression: Java) -> Java:
        if place not in self.inputs:
            self.inputs[place] = self.catalyst.attribute(f"c{place}", expression.dataType())
        return self.inputs[place]
