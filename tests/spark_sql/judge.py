"""What becomes of the queries of a file: equal to batch at every epoch, or how not.

A query is left open by SQL itself where Spark gives two answers for the same rows in another order.
"""

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

import nosync as ns
from nosync.testing.oracle import Change, Tables, disagreements
from nosync.testing.rows import difference
from tests.spark_sql.scripts import Script, asks
from tests.spark_sql.tables import Table, changes, mentioned, prepare, schemas, words

Kind = Literal["equal", "open", "refused", "crashed", "wrong"]
ORDERS = 4
TOGETHER = 12  # queries of one flow
SEED = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    statement: str
    kind: Kind
    words: str = ""


def judged(spark: SparkSession, script: Script) -> Iterator[Verdict]:
    """The verdict of each query over changing tables that Spark itself can answer."""
    session = spark.newSession()
    for name, value in script.settings:
        session.conf.set(name, value)
    prepare(session)
    waiting: list[str] = []
    for statement in script.statements:
        if asks(statement):
            waiting.append(statement)
            continue
        yield from _groups(session, waiting)
        waiting = []
        try:
            session.sql(statement).collect()
        except Exception:  # files hold statements that fail on purpose
            continue
    yield from _groups(session, waiting)


def clear(spark: SparkSession) -> None:
    """Drops what a file has left in the catalogue."""
    for base in [row[0] for row in spark.sql("show databases").collect()]:
        if base != "default":
            spark.sql(f"drop database if exists `{base}` cascade")
    for row in spark.sql("show tables in default").collect():
        sort = "view" if spark.catalog.getTable(f"default.`{row.tableName}`").tableType == "VIEW" else "table"
        spark.sql(f"drop {sort} if exists default.`{row.tableName}`")


def _groups(session: SparkSession, statements: Sequence[str]) -> Iterator[Verdict]:
    for start in range(0, len(statements), TOGETHER):
        some = list(dict.fromkeys(statements[start : start + TOGETHER]))
        tables = mentioned(session, some)
        known = {table.name.casefold() for table in tables}
        asked = [one for one in some if known & words(one) and _answered(session, one)]
        if asked:
            yield from Group(session, tables, tuple(asked)).verdicts()


def _answered(session: SparkSession, statement: str) -> bool:
    try:
        session.sql(statement).toArrow()
    except Exception:  # Spark's own failures come in many kinds
        return False
    return True


@dataclass(frozen=True)
class Group:
    """Queries that become views of one flow."""

    session: SparkSession
    tables: tuple[Table, ...]
    statements: tuple[str, ...]

    def verdicts(self) -> Iterator[Verdict]:
        found: dict[str, Verdict] = {}
        names = {f"query_{number}": statement for number, statement in enumerate(self.statements)}

        def program(flow: Any) -> None:
            for table in self.tables:
                flow.source(table.name)
            for name, statement in names.items():
                if statement not in found:
                    self._declare(flow, name, statement, found)

        history = changes(self.tables, SEED)
        try:
            with tempfile.TemporaryDirectory() as home:
                for name, epoch, how in disagreements(self.session, program, schemas(self.tables), history, Path(home)):
                    if names[name] not in found:
                        found[names[name]] = self._differing(names[name], f"at epoch {epoch}: {how}")
        except Exception as error:  # of whatever kind: that is what this looks for
            yield from found.values()
            yield from self._apart([one for one in self.statements if one not in found], error)
            return
        for statement in self.statements:
            yield found.get(statement, Verdict(statement, "equal"))

    def _declare(self, flow: Any, name: str, statement: str, found: dict[str, Verdict]) -> None:
        try:
            flow.view(name, flow.sql(statement))
        except ns.Invalid as error:
            found[statement] = Verdict(statement, "refused", str(error))
        except Exception as error:
            found[statement] = Verdict(statement, "crashed", f"{type(error).__name__} at declaration: {error}")

    def _apart(self, left: Sequence[str], error: Exception) -> Iterator[Verdict]:
        """The run stopped: one half of the queries at a time, down to those that stop it alone."""
        if len(left) > 1:
            for half in (left[: len(left) // 2], left[len(left) // 2 :]):
                yield from Group(self.session, self.tables, tuple(half)).verdicts()
        elif left and self._answers(left[0]):
            yield Verdict(left[0], "crashed", f"{type(error).__name__}: {error}")

    def _answers(self, statement: str) -> bool:
        """Whether Spark has an answer at every epoch: if not, nobody has to."""
        history = changes(self.tables, SEED)
        tables = Tables(self.session, schemas(self.tables), history)
        try:
            for epoch in range(1, len(history) + 1):
                tables.batch(epoch).sql(statement).toArrow()
        except Exception:
            return False
        return True

    def _differing(self, statement: str, how: str) -> Verdict:
        """Wrong, unless Spark does not agree with itself."""
        chance, first = random.Random(SEED), None
        for _ in range(ORDERS):
            batch = Tables(self.session, schemas(self.tables), [*self._shuffled(chance)]).batch(1)
            answer = batch.sql(statement).toArrow()
            if first is not None and difference(first, answer):
                return Verdict(statement, "open", how)
            first = first or answer
        return Verdict(statement, "wrong", how)

    def _shuffled(self, chance: random.Random) -> Iterator[Change]:
        added = {table.name: chance.sample(table.rows, len(table.rows)) for table in self.tables}
        yield Change(added)
