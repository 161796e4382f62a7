"""Each public function has an example in its docstring, and all examples there do what they say."""

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns

FUNCTIONS = [name for name in ns.__all__ if inspect.isfunction(getattr(ns, name))]
CLASSES = ("Flow", "Run", "Home")


def owners() -> Iterator[tuple[str, Any]]:
    yield from ((name, getattr(ns, name)) for name in FUNCTIONS)
    for name in CLASSES:
        yield name, getattr(ns, name)
        for member, found in vars(getattr(ns, name)).items():
            if not member.startswith("_") and (callable(found) or isinstance(found, property)):
                yield f"{name}.{member}", found


EXAMPLES = {name: owner for name, owner in owners() if ">>>" in (inspect.getdoc(owner) or "")}


@pytest.fixture(scope="module")
def names(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What examples stand on: a flow to declare on, and one that runs and has had one row."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "in").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("nosync.flow.flow.active_or_local", lambda: quick)
        running, source = ns.Flow("shop"), ns.memory("user string, price double")
        rows = running.source("purchases", source)
        running.view("spend", rows.groupBy("user").agg(F.sum("price").alias("spent")))
        with running.start("state/shop", shards=1) as run:
            source.add([("ann", 3.5)])
            run.processAllAvailable()
            yield {"ns": ns, "F": F, "run": run, "home": ns.open(Path("state/shop"))}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_does_what_it_says(names: dict[str, Any], name: str) -> None:
    flow = ns.Flow("shop")
    own = names | {"flow": flow, "purchases": flow.source("purchases", ns.memory("user string, price double"))}
    printed: list[str] = []
    docstring = inspect.getdoc(EXAMPLES[name]) or ""
    example = doctest.DocTestParser().get_doctest(docstring, own, name, None, None)
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=printed.append)
    assert not printed, "".join(printed)


WITHIN = (
    "Flow.program", "Run.explain", "Run.stop", "Run.unpin", "Home.schema", "Home.record", "Home.resolve", "Home.change_steps",
    "Home.openings",
    "Home.covers", "Home.layers", "Home.bring", "Home.lend",
)  # fmt: skip
METHODS = [name for name, found in owners() if "." in name and callable(found) and name not in WITHIN]


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_every_public_function_has_an_example(name: str) -> None:
    assert name in EXAMPLES
