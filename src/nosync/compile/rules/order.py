"""Sort, repartitioning and the limit of each partition: dropped, since a multiset has no order and lies nowhere.

Where an order means something, within a limit or a window, the rule of that node has read it already.
"""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Java, children
from nosync.graph.templates import Template

if TYPE_CHECKING:
    from nosync.compile.query import Query


def unordered(query: "Query", plan: Java) -> Template:
    return query.passed_on(children(plan)[0])
