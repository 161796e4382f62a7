"""Each public call has an example in its docstring, and all examples there do what they say."""

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.history.stored_view import StoredView
from nosync.model.absent import within
from nosync.model.progress import Progress
from nosync.model.source import Source
from nosync.sources.memory import Memory

FUNCTIONS = [name for name in ns.__all__ if inspect.isfunction(getattr(ns, name))]
CLASSES = (ns.Flow, ns.Run, ns.Home, StoredView, Memory, Progress)  # those of `nosync`, and whatever these give that has calls
OF_A_SOURCE = {*vars(Source), "table", "acknowledge", "on_arrival"}  # what a flow calls, not its user


def owners() -> Iterator[tuple[str, Any]]:
    yield from ((name, getattr(ns, name)) for name in FUNCTIONS)
    for kind in CLASSES:
        yield kind.__name__, kind
        for member, found in vars(kind).items():
            hidden = member.startswith("_") or member in within(kind) or (kind is Memory and member in OF_A_SOURCE)
            if not hidden and (inspect.isfunction(found) or isinstance(found, property)):
                yield f"{kind.__name__}.{member}", found


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
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(example, out=printed.append)
    assert not printed, "".join(printed)


CALLS = [name for name, found in owners() if inspect.isfunction(found)]


@pytest.mark.parametrize("name", CALLS)
def test_every_public_call_has_an_example(name: str) -> None:
    assert name in EXAMPLES


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_completion_shows_what_is_public_and_the_reference_leaves_out_the_rest(names: dict[str, Any], kind: type) -> None:
    reference = (Path(ns.__file__).parents[2] / "mkdocs.yml").read_text()
    assert all(f"|{name}|" in reference for name in within(kind))
    if kind is ns.Home:
        assert not {*within(kind)} & {*dir(names["home"])} and {"view", "sql", "epoch"} <= {*dir(names["home"])}
