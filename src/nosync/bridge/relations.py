"""Leaves of plans, found and replaced wherever they stand, also inside of subqueries: names that nobody has resolved yet, and files.

`Relations.java` walks the plan; it is compiled once in each JVM.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.catalyst import AttributeIdentity, Catalyst, Java, items, kind
from nosync.bridge.frames import analyzed
from nosync.bridge.packages import packages
from nosync.bridge.trees import helper
from nosync.model.quoting import quoted

NAMES, V1, V2 = "UnresolvedRelation", "LogicalRelation", "DataSourceV2Relation"
ADDRESS = re.compile(r"@[0-9a-f]+")  # what Java prints of values that cannot say what they hold


@dataclass(frozen=True)
class Named:
    """A table as a query names it. `streaming`: what is new in it is asked for."""

    parts: tuple[str, ...]
    streaming: bool


@dataclass(frozen=True)
class FileRelation:
    """Files that a query reads in batch. `table` is the table of the catalog that they are, if any."""

    format: str
    options: dict[str, str]
    paths: tuple[str, ...]
    schema: StructType
    table: str | None


def split(spark: SparkSession, text: str) -> list[tuple[int, str]]:
    """The statements of a file of SQL as Spark splits it, each with the number of its first line."""
    found, line = [], 1
    for statement in items(packages(spark).org.apache.spark.sql.catalyst.util.StringUtils.splitSemiColon(text, False)):
        stripped = statement.lstrip()
        found.append((line + statement[: len(statement) - len(stripped)].count("\n"), statement))
        line += statement.count("\n")
    return found


def parsed(spark: SparkSession, text: str) -> Java:
    """The plan of a statement, nothing of it resolved."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(text)


def name_parts(spark: SparkSession, name: str) -> tuple[str, ...]:
    """A name as Spark takes it apart: `catalog`.`database`.`table`."""
    return tuple(map(str, items(spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name))))


def over_names(catalyst: Catalyst, plan: Java, rows_of: Callable[[Named], tuple[DataFrame, tuple[str, ...]] | None]) -> Java:
    """The same unresolved plan with rows in the place of names: each with the whole name that its columns may be called by. None leaves a
    name to Spark."""

    def instead(leaf: Java) -> Java | None:
        found = rows_of(Named(tuple(map(str, items(leaf.multipartIdentifier()))), bool(leaf.isStreaming())))
        return None if found is None else called(catalyst, analyzed(found[0]), found[1])

    rewriter: Any = catalyst.jvm.org.apache.spark.sql.catalyst.analysis.CTESubstitution
    return _over(catalyst, rewriter.apply(plan), NAMES, instead)


def called(catalyst: Catalyst, plan: Java, name: tuple[str, ...]) -> Java:
    """The rows of a plan under a name."""
    identifier = catalyst.jvm.org.apache.spark.sql.catalyst.AliasIdentifier(name[-1], _sequence(catalyst, name[:-1]))
    return catalyst.logical.SubqueryAlias(identifier, plan)


def over_files(catalyst: Catalyst, frame: DataFrame, rows_of: Callable[[FileRelation], DataFrame | None]) -> DataFrame:
    """The same query over other rows, wherever it reads files. What is bound to a column stays bound."""

    def instead(leaf: Java) -> Java | None:
        found = described(leaf)
        return _in_place(catalyst, leaf, rows_of(found)) if found is not None else None

    plan = analyzed(frame)
    found = _over(catalyst, plan, V1, instead)
    return frame if found is plan else catalyst.frame(found)


def over_tables(catalyst: Catalyst, frame: DataFrame, rows_of: Callable[["Table"], DataFrame | None]) -> DataFrame:
    """The same query over other rows, wherever it reads a database or whatever else Spark reads in batch."""

    def instead(leaf: Java) -> Java | None:
        return None if leaf.isStreaming() else _in_place(catalyst, leaf, rows_of(Table(catalyst, leaf)))

    plan = analyzed(frame)
    found = _over(catalyst, _over(catalyst, plan, V1, instead), V2, instead)
    return frame if found is plan else catalyst.frame(found)


def _in_place(catalyst: Catalyst, leaf: Java, given: DataFrame | None) -> Java | None:
    if given is None:
        return None
    rows = analyzed(given)
    named = {str(attribute.name()): attribute for attribute in items(rows.output())}
    targets = [AttributeIdentity.of(attribute) for attribute in items(leaf.output())]
    if any(target.name not in named for target in targets):  # what is known of the file itself
        return None
    return catalyst.renamed([named[target.name] for target in targets], targets, rows)


@dataclass(frozen=True)
class Table:
    """What a query reads in batch, whatever it is."""

    catalyst: Catalyst
    leaf: Java

    def __repr__(self) -> str:
        """The catalog's name of it, or what Spark calls it: another table may be called the same."""
        if self._named():
            return f"{self.leaf.catalog().get().name()}.{self.leaf.identifier().get()}"
        if kind(self.leaf) == V2:
            return str(self.leaf.table().name())
        files = described(self.leaf)
        if files is not None:
            return files.table or f"{files.format} {' '.join(files.paths)}"
        entry = self.leaf.catalogTable()
        return str(entry.get().identifier().unquotedString() if entry.isDefined() else ADDRESS.sub("", self.leaf.relation().toString()))

    @property
    def schema(self) -> StructType:
        return StructType.fromJson(json.loads(self.leaf.schema().json()))

    def same(self, other: "Table") -> bool:
        return bool(self.leaf.canonicalized().equals(other.leaf.canonicalized()))

    def now(self) -> DataFrame:
        """Its rows as they are now: where Spark remembers files or the table of a catalog, it looks again."""
        if self._named():
            parts = [*self.leaf.identifier().get().namespace(), self.leaf.identifier().get().name()]
            return self.catalyst.spark.table(".".join(map(quoted, [self.leaf.catalog().get().name(), *parts])))
        if kind(self.leaf) == V1 and kind(self.leaf.relation()) == "HadoopFsRelation":
            self.leaf.relation().location().refresh()
        return self.catalyst.frame(self.leaf)

    def _named(self) -> bool:
        return kind(self.leaf) == V2 and self.leaf.catalog().isDefined() and self.leaf.identifier().isDefined()


def described(leaf: Java) -> FileRelation | None:
    """What a relation reads, if it is files; None for a database and the like, and for a stream."""
    relation = leaf.relation()
    if kind(relation) != "HadoopFsRelation" or leaf.isStreaming():
        return None
    try:
        format = str(relation.fileFormat().shortName())
    except Py4JError:  # a format that has no name
        return None
    table = leaf.catalogTable()
    paths = tuple(str(path.toString()) for path in items(relation.location().rootPaths()))
    options = {str(pair._1()): str(pair._2()) for pair in items(relation.options().toSeq())}
    schema = StructType.fromJson(json.loads(relation.schema().json()))
    return FileRelation(format, options, paths, schema, str(table.get().identifier().unquotedString()) if table.isDefined() else None)


def _over(catalyst: Catalyst, plan: Java, sort: str, instead: Callable[[Java], Java | None]) -> Java:
    relations = helper(catalyst.spark, "Relations").of(sort)
    leaves = [relations.found(number) for number in range(relations.search(plan))]
    pairs = [(leaf, after) for leaf in leaves if (after := instead(leaf)) is not None]
    for leaf, after in pairs:
        relations.put(leaf, after)
    return relations.replaced(plan) if pairs else plan


def _sequence(catalyst: Catalyst, texts: tuple[str, ...]) -> Java:
    values = catalyst.jvm.java.util.ArrayList()
    for text in texts:
        values.add(text)
    return catalyst.jvm.org.apache.spark.api.python.PythonUtils.toSeq(values)
