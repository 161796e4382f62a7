"""The SQL files of a project: split, parsed and read statement by statement, as `spark-pipelines` does it.

SET, USE and USE CATALOG hold for the rest of their file.
"""

from collections.abc import Callable
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from nosync.bridge.catalyst import Catalyst, Java
from nosync.bridge.errors import JavaError, words_of
from nosync.bridge.pipeline_statements import Events, Statement, statement
from nosync.bridge.relations import split
from nosync.model.errors import Invalid
from nosync.pipelines.definitions import Capture, Dataset, Key, Kind, Namespace, Project, Query
from nosync.pipelines.reading import over_plan

KINDS: tuple[Kind, ...] = ("materialized view", "streaming table", "temporary view", "view")
FORM = "Write CREATE MATERIALIZED VIEW, STREAMING TABLE, TEMPORARY VIEW, VIEW or FLOW, SET or USE."


def register_sql(spark: SparkSession, project: Project, text: str, file: str) -> None:
    """Adds what the statements of a file define to the project."""
    reader = _File(spark, project, project.namespace)
    for line, one in split(spark, text):
        where = f"{file}:{line}"
        try:
            reader.take(statement(spark, one), where)
        except (PySparkException, JavaError) as error:
            raise Invalid(f"{where}: {words_of(error)}", hint="Correct the statement.") from None
        except Invalid as error:
            raise Invalid(error.message if where in error.message else f"{where}: {error.message}", hint=error.hint) from None


class _File:
    def __init__(self, spark: SparkSession, project: Project, namespace: Namespace) -> None:
        self.spark, self.project, self.namespace = spark, project, namespace
        self.settings: dict[str, str] = {}

    def take(self, said: Statement, where: str) -> None:
        match said.kind:
            case "set":
                self.settings[said.name[0]] = said.text
            case "use":
                self._use(said.name)
            case "flow":
                self._fill(said, self._target(said.target), ".".join(said.name), where)
            case kind if kind in KINDS:
                key = self.namespace.alone(said.name) if kind == "temporary view" else self.namespace.whole(said.name)
                self.project.define(_dataset(said, next(one for one in KINDS if one == kind), key, where))
                self._fill(said, key, self.project.namespace.short(key), where)
            case _:
                raise Invalid(f"{said.text} is no statement of a pipeline", hint=FORM)

    def _use(self, name: tuple[str, ...]) -> None:
        if name[0]:
            self.namespace = replace(self.namespace, catalog=name[0], database="default")
        elif len(name) == 3:
            self.namespace = replace(self.namespace, catalog=name[1], database=name[2])
        else:
            self.namespace = replace(self.namespace, database=name[1])

    def _target(self, parts: tuple[str, ...]) -> Key:
        alone = self.namespace.alone(parts)
        return alone if alone in self.project.datasets else self.namespace.whole(parts)

    def _fill(self, said: Statement, target: Key, name: str, where: str) -> None:
        settings = dict(self.settings)
        if said.query is not None:
            self.project.fill(Query(name, target, self._rows(said.query), self.namespace, where, settings))
        elif said.events is not None:
            self.project.fill(_capture(said.events, name, target, self._rows(said.events.source), self.namespace, where, settings))

    def _rows(self, plan: Java) -> Callable[[], DataFrame]:
        return lambda: over_plan(Catalyst(self.spark), plan)


def _dataset(said: Statement, kind: Kind, key: Key, where: str) -> Dataset:
    return Dataset(
        key, kind, where, said.comment, said.properties, said.partition_by, said.cluster_by, said.schema, said.format, text=said.text
    )


def _capture(
    said: Events, name: str, target: Key, rows: Callable[[], DataFrame], namespace: Namespace, where: str, settings: dict[str, str]
) -> Capture:
    for left, right in ((said.columns, said.left_out), (said.tracked, said.untracked)):
        if left and right:
            raise Invalid("columns are both named and left out", hint="Say one of the two.")
    if said.scd == 1 and (said.tracked or said.untracked):
        raise Invalid("TRACK HISTORY needs STORED AS SCD TYPE 2", hint="Add it, or leave out TRACK HISTORY.")
    return Capture(
        name, target, rows, namespace, where, settings, said.keys, said.sequence, said.deletes, said.columns, said.left_out,
        said.scd == 2, said.tracked, said.untracked,
    )  # fmt: skip
