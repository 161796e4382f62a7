"""Runs queries as views of one flow over one history and says which of them differ from batch, and how."""

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import nosync as ns
from nosync.testing.oracle import Program, Tables, disagreements, fill
from tests.metamorphic import checksums, contents
from tests.random_sql.forms import Grower
from tests.random_sql.rows import NEVER, Life, Table, changes, lives, tables
from tests.random_sql.trees import Node
from tests.ways import EVERY_WAY, pinned

REFUSED = "refused: "


@dataclass(frozen=True, slots=True)
class Case:
    """Everything a run depends on."""

    tables: tuple[Table, ...]
    views: tuple[Node, ...]
    lives: tuple[Life, ...]
    shards: int

    def alone(self, view: Node) -> "Case":
        return replace(self, views=(view,))


def grown(seed: int, views: int = 6, epochs: int = 3, rows: int = 12) -> Case:
    """The case of a seed."""
    chance = random.Random(seed)
    among = tables(chance)
    grower = Grower(chance, among)
    queries = [grower.typed(), *(grower.tree(chance.choice([1, 2, 2, 3])) for _ in range(views - 1))]
    return Case(tuple(among), tuple(queries), tuple(lives(chance, among, epochs, rows)), chance.randint(1, 3))


def judge(spark: SparkSession, case: Case) -> dict[Node, str]:
    """What is wrong, by view; a view that is refused says so. Nothing where all is well."""
    found: dict[Node, str] = {}
    if not case.lives:
        return found
    names = {f"v{i}": view for i, view in enumerate(case.views)}
    program, schemas = _program(spark, case, found), {table.name: table.schema for table in case.tables}
    with tempfile.TemporaryDirectory() as home:
        try:
            for name, epoch, difference in disagreements(spark, program, schemas, changes(case.lives), Path(home), case.shards):
                found.setdefault(names[name], f"at epoch {epoch}: {difference}")
        except (ns.NosyncError, PySparkException) as error:
            return found | _apart(spark, replace(case, views=tuple(view for view in case.views if view not in found)), error)
    return found


def _program(spark: SparkSession, case: Case, found: dict[Node, str]) -> Program:
    """Declares the views in which nothing was `found`, and notes what is found meanwhile."""
    spark.udf.register("longer", lambda text: None if text is None else text + "!", "string")

    def program(flow: Any) -> None:
        for table in case.tables:
            flow.source(table.name)
        for number, view in enumerate(case.views):
            if view not in found:
                _declare(spark, case, flow, f"v{number}", view, found)

    return program


def ways_apart(spark: SparkSession, case: Case) -> list[str]:
    """Where the layers or the rows of one way to compute epochs are not those of another, to the bit."""
    program, schemas, given = _program(spark, case, {}), {table.name: table.schema for table in case.tables}, changes(case.lives)
    apart: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        homes = {way: Path(folder) / way for way in EVERY_WAY}
        for way, home in homes.items():
            with pinned(spark, way):
                fill(spark, program, schemas, given, home, case.shards)
        layers = {way: checksums(home) for way, home in homes.items()}
        for way in EVERY_WAY[1:]:
            differing = sorted({f"{key}" for key, _ in layers["narrow"].items() ^ layers[way].items()})
            apart += [f"{way} is not narrow: layers {', '.join(differing[:3])}"] if differing else []
            for epoch in range(1, len(given) + 1):
                if contents(homes["narrow"], epoch) != contents(homes[way], epoch):
                    apart.append(f"{way} is not narrow: rows at epoch {epoch}")
    return apart if layers["narrow"] else ["nothing was written"]


def _declare(spark: SparkSession, case: Case, flow: Any, name: str, view: Node, found: dict[Node, str]) -> None:
    try:
        flow.sql(f"create view {name} as {view.sql}")
    except ns.Refused as error:
        found[view] = f"{REFUSED}{error}"
    except (ns.NosyncError, PySparkException) as error:
        answered = _answered(spark, case, view)
        found[view] = f"{type(error).__name__} at declaration: {error}" if answered else f"{REFUSED}by Spark: {error}"


def _apart(spark: SparkSession, case: Case, error: Exception) -> dict[Node, str]:
    """The run stopped: one half of the views at a time, down to those that stop it alone."""
    if len(case.views) <= 1:
        return {view: f"{type(error).__name__}: {error}" for view in case.views if _answered(spark, case, view)}
    half = len(case.views) // 2
    found: dict[Node, str] = {}
    for views in (case.views[:half], case.views[half:]):
        found |= judge(spark, replace(case, views=views))
    return found


def _answered(spark: SparkSession, case: Case, view: Node) -> bool:
    """Whether Spark itself can answer the query over all rows that ever were: if not, nobody has to."""
    schemas = {table.name: table.schema for table in case.tables}
    everything = changes([replace(life, gone=NEVER) for life in case.lives])
    try:
        Tables(spark, schemas, everything).batch(len(everything)).sql(view.sql).toArrow()
    except Exception:  # Spark's own failures come in many kinds
        return False
    return True


def reported(case: Case, what: str) -> str:
    """The case as a reader can repeat it."""
    lines = [what, *(f"query: {view.sql}" for view in case.views)]
    lines += [f"table {table.name}: {table.schema}" for table in case.tables]
    lines += [f"epoch {epoch}: {change}" for epoch, change in enumerate(changes(case.lives), start=1)]
    return "\n".join([*lines, f"{case.shards} shards"])


def wrong(found: Mapping[Node, str]) -> dict[Node, str]:
    return {view: text for view, text in found.items() if not text.startswith(REFUSED)}


def refused(found: Mapping[Node, str]) -> Sequence[str]:
    return [text for text in found.values() if text.startswith(REFUSED)]
