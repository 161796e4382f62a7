"""What is measured: which engines run over which input, how often, and which figures are to be reached.

A case's contestants run in turn (A B C, A B C, ...), each in a fresh process, so that a machine that slows down slows all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import inputs
from bench.bids import FILLING, bids, ids
from bench.inputs import Input
from bench.texts import lines


@dataclass(frozen=True)
class Contestant:
    """An engine within a case. The label is its name in the tables."""

    label: str
    engine: str
    data: Input
    query: str = "plain"
    levels: int = 1


@dataclass(frozen=True)
class Case:
    """Contestants over one kind of input. The first `skip` epochs are warm-up (and filling), and are not counted."""

    name: str
    title: str
    contestants: tuple[Contestant, ...]
    repetitions: int
    skip: int = 3


@dataclass(frozen=True)
class Target:
    """A figure to reach: `measure` of the subject, divided by that of the baseline if there is one, within the bound."""

    case: str
    measure: str
    subject: str
    baseline: str | None
    relation: str
    bound: float


STATEFUL = ("aggregate", "join", "distinct", "top")

TARGETS = (
    Target("plain", "throughput", "nosync", "spark-rocksdb", "at least", 8.0),
    Target("plain", "throughput", "nosync", "spark-memory", "at least", 4.0),
    Target("realistic", "throughput", "nosync", "spark-rocksdb", "at least", 5.0),
    Target("realistic", "throughput", "nosync", "spark-memory", "at least", 2.5),
    Target("csv", "throughput", "nosync", "spark-stateless", "at least", 0.85),
    Target("csv", "throughput", "nosync", "spark-rocksdb", "at least", 4.5),
    Target("small", "median", "nosync", "spark-memory", "at most", 0.6),
    Target("small", "median", "nosync", "spark-rocksdb", "at most", 0.6),
    Target("growth", "median", "nosync, large state", "nosync, small state", "at most", 1.3),
    Target("p95", "tail", "nosync", None, "at most", 1.5),
    *(Target(name, "median", "nosync, large state", "nosync, small state", "at most", 1.5) for name in STATEFUL),
    Target("duplicates", "throughput", "nosync", "spark-rocksdb", "at least", 3.0),
    Target("duplicates", "throughput", "nosync", "spark-memory", "at least", 3.0),
    Target("words", "throughput", "nosync", "spark-rocksdb", "at least", 3.0),
    Target("words", "throughput", "nosync", "spark-memory", "at least", 3.0),
    Target("grep", "throughput", "nosync", "spark-memory", "at least", 1.0),
    Target("plain", "memory", "nosync", "spark-rocksdb", "at most", 1.0),
    Target("realistic", "memory", "nosync", "spark-rocksdb", "at most", 1.0),
)

SPARK = ("spark-memory", "spark-rocksdb")


def plain(work: Path, quick: bool) -> Case:
    """Integer keys, count and sum, Parquet."""
    data = inputs.plain(work, 6, 50_000, 100_000) if quick else inputs.plain(work, 20, 500_000, 1_000_000)
    return Case(
        "plain", _title("Parquet, integer keys, count and sum", data), _same_input(data, "plain", *SPARK, "nosync"), 1 if quick else 3
    )


def realistic(work: Path, quick: bool) -> Case:
    """Names with gaps and skew as keys; sums of decimals and doubles, average, minimum, maximum."""
    data = inputs.realistic(work, 6, 50_000, 20_000) if quick else inputs.realistic(work, 20, 500_000, 200_000)
    engines = ("nosync",) if quick else (*SPARK, "nosync")
    return Case(
        "realistic", _title("Parquet, string keys, five aggregates", data), _same_input(data, "realistic", *engines), 1 if quick else 3
    )


def csv(work: Path, quick: bool) -> Case:
    """The plain data as text, where reading is most of the work."""
    data = inputs.plain(work, 6, 50_000, 100_000, "csv") if quick else inputs.plain(work, 20, 500_000, 1_000_000, "csv")
    engines = ("spark-stateless", "nosync") if quick else ("spark-stateless", "spark-rocksdb", "nosync")
    return Case("csv", _title("CSV, integer keys, count and sum", data), _same_input(data, "plain", *engines), 1 if quick else 2)


def small(work: Path, quick: bool) -> Case:
    """Epochs of 1,000 rows: what an epoch costs before it does any work, and what each added stateful level costs."""
    data = inputs.plain(work, 12 if quick else 130, 1_000, 100_000, label="small")
    chains = tuple(Contestant(f"nosync, {n} levels", "nosync", data, levels=n) for n in ((3,) if quick else (2, 3)))
    engines = () if quick else _same_input(data, "plain", *SPARK, "nosync")
    return Case("small", _title("1,000 rows an epoch", data), engines + chains, 1 if quick else 2, skip=3 if quick else 10)


def growth(work: Path, quick: bool) -> Case:
    """The same epochs over a small and over a large state."""
    small_keys, large_keys, rows, touched = (20_000, 200_000, 50_000, 10_000) if quick else (200_000, 10_000_000, 500_000, 100_000)
    few = inputs.growth(work, small_keys, 6 if quick else 24, rows, touched)
    many = inputs.growth(work, large_keys, 6 if quick else 24, rows, touched)
    contestants = (Contestant("nosync, small state", "nosync", few), Contestant("nosync, large state", "nosync", many))
    title = f"{rows:,} rows touching {touched:,} keys, of {small_keys:,} and of {large_keys:,}"
    return Case("growth", title, contestants, 1 if quick else 2, skip=23)


def p95(work: Path, quick: bool) -> Case:
    """Many epochs: whether merging, collecting garbage or writing checkpoints shows in some of them.

    The first 30 are warm-up for every engine: until about then epochs still get faster, and that is what one would measure.
    """
    data = inputs.plain(work, 12 if quick else 150, 10_000 if quick else 100_000, 1_000_000, label="steady")
    engines = _same_input(data, "plain", *(() if quick else SPARK), "nosync")
    return Case("p95", _title("many epochs", data), engines, 1, skip=3 if quick else 30)


def operator(name: str) -> Callable[[Path, bool], Case]:
    """One operator, the same epochs over three sizes of state."""

    def case(work: Path, quick: bool) -> Case:
        sizes, files, rows = ((2_000, 20_000, 50_000), 6, 2_000) if quick else ((100_000, 1_000_000, 10_000_000), 20, 20_000)
        labels = ("nosync, small state", "nosync, middle state", "nosync, large state")
        data = [bids(work, size, files, rows) for size in sizes]
        contestants = tuple(Contestant(label, "nosync", input, name) for label, input in zip(labels, data, strict=True))
        return Case(name, f"{rows:,} rows over {', '.join(f'{size:,}' for size in sizes)} rows of state", contestants, 1, skip=FILLING + 3)

    return case


def duplicates(work: Path, quick: bool) -> Case:
    """Ids of which a third has been there before: dropDuplicates."""
    data = ids(work, 6, 50_000) if quick else ids(work, 20, 500_000)
    return Case("duplicates", _title("dropDuplicates", data), _same_input(data, "duplicates", *SPARK, "nosync"), 1)


def words(work: Path, quick: bool) -> Case:
    """WordCount over a window of 30 seconds that slides by one, each window once when it is complete."""
    data = lines(work, 8, 1_000) if quick else lines(work, 60, 20_000)
    engines = _same_input(data, "words", *SPARK, "nosync")
    return Case("words", _title("WordCount, 30 s sliding by 1 s", data), engines, 1, skip=5 if quick else 35)


def grep(work: Path, quick: bool) -> Case:
    """Lines that hold a rare word."""
    data = lines(work, 6, 10_000) if quick else lines(work, 20, 500_000)
    return Case("grep", _title("Grep", data), _same_input(data, "grep", "spark-memory", "nosync"), 1 if quick else 2)


def _same_input(data: Input, query: str, *engines: str) -> tuple[Contestant, ...]:
    return tuple(Contestant(engine, engine, data, query) for engine in engines)


def _title(text: str, data: Input) -> str:
    return f"{text}; {data.rows:,} rows in {data.files} files"


CASES: dict[str, Callable[[Path, bool], Case]] = {
    "plain": plain,
    "realistic": realistic,
    "csv": csv,
    "small": small,
    "growth": growth,
    "p95": p95,
    **{name: operator(name) for name in STATEFUL},
    "duplicates": duplicates,
    "words": words,
    "grep": grep,
}
