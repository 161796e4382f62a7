"""Runs a project: its files become a flow, the flow takes in what is new, and its tables become the next edition."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from nosync.flow.flow import Flow
from nosync.history.home import Home
from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch
from nosync.pipelines.building import Building
from nosync.pipelines.catalog import TableLocation, editions_of
from nosync.pipelines.definitions import TABLES, Key, Project
from nosync.pipelines.editions import Editions
from nosync.pipelines.loading import load_project
from nosync.pipelines.publishing import Outcome, Publishing
from nosync.pipelines.spec import Spec
from nosync.pipelines.storage import Storage
from nosync.runtime.run import Run
from nosync.spark.session import local_session

Say = Callable[[str], None]
LOOK_SECONDS = 0.05
WHOLE_SECONDS, REST = 60.0, 10  # between two recomputations without new input: at least, and so many times as long as the last one took


@dataclass(frozen=True)
class Wanted:
    """Which tables to update, and which to begin anew. None of `refresh`: all. `remote`: where a copy of the state goes, as for
    `flow.start`."""

    refresh: Sequence[str] = ()
    full_refresh: Sequence[str] = ()
    full_refresh_all: bool = False
    remote: str | None = None

    def __post_init__(self) -> None:
        if self.full_refresh_all and (self.refresh or self.full_refresh):
            other = "--refresh" if self.refresh else "--full-refresh"
            raise Invalid(f"--full-refresh-all and {other} exclude each other", hint=f"Leave out {other}.")


@dataclass(frozen=True)
class Plan:
    """A project as a flow, before anything runs: which tables are kept up to date, and why others are not."""

    project: Project
    building: Building
    flow: Flow

    @property
    def lines(self) -> list[str]:
        """What becomes of each dataset."""
        return [f"{dataset.kind} {self.building.name(key)}: {self._how_it_is_kept(key)}" for key, dataset in self.project.datasets.items()]

    def _how_it_is_kept(self, key: Key) -> str:
        if key in self.building.reasons:
            return f"recomputed whole with each run: {self.building.reasons[key]}"
        said = "maintained" if self.project.datasets[key].kind in TABLES else "part of what reads it"
        read = self.building.compared.get(key, [])
        return f"{said}; {', '.join(read)}, not being files, is read whole each time and compared with the rows before" if read else said

    @property
    def tables(self) -> list[Key]:
        return [key for key, dataset in self.project.datasets.items() if dataset.kind in TABLES]


@dataclass(frozen=True)
class Report:
    """What a run did: by table, and the epoch that the tables show."""

    epoch: Epoch
    edition: int
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    plan: Plan | None = None


def session_for(spec: Spec, more: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the settings of the project: a new one of the running Spark, if there is one."""
    settings = {**spec.configuration, **(more or {})}
    active = SparkSession.getActiveSession()
    if active is None:
        return local_session(settings)
    session = active.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def planned(spec: Spec, spark: SparkSession) -> Plan:
    """Reads the files of a project and declares its flow. Nothing is written."""
    return _declared(spec, spark, load_project(spec, spark), Storage.of(spec.storage))


def _declared(spec: Spec, spark: SparkSession, project: Project, storage: Storage) -> Plan:
    flow = Flow(spec.name, spark)
    building = Building(project, flow, spec.folder, storage.generations)
    building.build()
    return Plan(project, building, flow)


@dataclass(frozen=True)
class Pipeline:
    """A project whose flow is running."""

    plan: Plan
    places: Mapping[Key, TableLocation]
    editions: Editions
    storage: Storage
    run: Run
    anew: frozenset[Key]
    only: frozenset[Key] | None

    def publish(self, first: bool = True) -> Report:
        """All tables as of the newest epoch. Tables to begin anew are written whole the `first` time."""
        home, anew = Home(self.storage.path), self.anew if first else frozenset[Key]()
        publishing = Publishing(self.plan.building, self.places, self.editions, self.run, home, self.storage.name, anew, self.only)
        edition = publishing.publish()
        return Report(publishing.epoch, edition.number, publishing.outcomes, self.plan)


@contextmanager
def _running(spec: Spec, spark: SparkSession, wanted: Wanted, say: Say) -> Iterator[Pipeline]:
    storage = Storage.of(spec.storage, wanted.remote)
    project = load_project(spec, spark)
    anew = project.named(wanted.full_refresh)
    chosen = project.named(wanted.refresh) | anew
    storage = storage.anew() if wanted.full_refresh_all else storage.begun_anew(project.namespace.short(key) for key in anew)
    plan = _declared(spec, spark, project, storage)
    for line in plan.lines:
        say(line)
    places = {key: TableLocation.of(spark, project.datasets[key], project.namespace) for key in plan.tables}
    for key, place in places.items():
        place.check(replacing=wanted.full_refresh_all or key in anew)
    storage.save()
    editions = editions_of(spark, project.namespace, spec.name)
    options: dict[str, Any] = {"home": storage.path, "remote": storage.copy, "on_change": "rebuild", "on_other_settings": "accept"}
    with plan.flow.start(quiet=True, **options) as run:
        yield Pipeline(plan, places, editions, storage, run, frozenset(anew), frozenset(chosen) if chosen else None)
    storage.tidy()


def run_pipeline(spec: Spec, spark: SparkSession, wanted: Wanted | None = None, say: Say = lambda line: None) -> Report:
    """Updates the tables of a project once, with all that is there now."""
    with _running(spec, spark, wanted or Wanted(), say) as pipeline:
        pipeline.run.processAllAvailable()
        return pipeline.publish()


def follow_pipeline(
    spec: Spec, spark: SparkSession, on_report: Callable[[Report], object], wanted: Wanted | None = None, say: Say = lambda line: None
) -> None:
    """Keeps the tables of a project at the newest epoch until somebody stops it: a KeyboardInterrupt, or `on_report` raises
    `StopIteration`. An edition has all epochs that were computed while the one before was written. What is recomputed whole is so with
    each edition, and about once a minute."""
    with _running(spec, spark, wanted or Wanted(), say) as pipeline:
        pipeline.run.processAllAvailable()
        report, again_at = _published(pipeline, first=True)
        with suppress(KeyboardInterrupt, StopIteration):
            on_report(report)
            while not pipeline.run.awaitTermination(LOOK_SECONDS):
                if pipeline.run.epoch > report.epoch or time.monotonic() >= again_at:
                    report, again_at = _published(pipeline, first=False)
                    on_report(report)


def _published(pipeline: Pipeline, first: bool) -> tuple[Report, float]:
    """And when to do it again without new input: what is recomputed whole may depend on the time, or on anything."""
    begun = time.monotonic()
    report = pipeline.publish(first)
    now = time.monotonic()
    return report, now + max(WHOLE_SECONDS, REST * (now - begun)) if pipeline.plan.building.reasons else math.inf
