"""Catalyst while a query is declared: whatever is made, but for feeds, is known at once, together with all that the query was read from."""

from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession

from nosync.bridge.catalyst import Catalyst, Java
from nosync.bridge.trees import Table


class Declaring(Catalyst):
    """One table for what belongs together. Jobs make plans that nobody looks at again: they have the plain one."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._table = Table(self.trees)

    def forget(self) -> None:
        self._table.close()
        self._table = Table(self.trees)

    def read(self, tree: Java) -> Java:
        return self._table.read(tree)

    def attribute(self, name: str, type: Java, nullable: bool = True) -> Java:
        return self._table.attribute(name, type, nullable)

    def aliases(self, named: Iterable[tuple[Java, str]]) -> list[Java]:
        pairs = list(named)
        return self._table.aliases([value for value, _ in pairs], [name for _, name in pairs])

    def feed(self, named: Iterable[tuple[Java, str]], passed: Sequence[Java]) -> Java:
        pairs = list(named)
        return self._table.feed([value for value, _ in pairs], [name for _, name in pairs], passed, self.nowhere)

    def project(self, columns: Sequence[Java], plan: Java) -> Java:
        return self._table.project(columns, plan)
