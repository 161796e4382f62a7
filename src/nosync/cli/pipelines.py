"""`nosync pipelines`: a project of Spark Declarative Pipelines, run as one flow that keeps its tables up to date."""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nosync.model.errors import Invalid
from nosync.pipelines.spec import Spec, find_spec, make_project, read_spec

if TYPE_CHECKING:
    from nosync.pipelines.running import Report

SPEC = click.option("--spec", metavar="PATH", type=click.Path(path_type=Path), help="The project's file; else looked for here and above.")


def _names(context: click.Context, option: click.Parameter, said: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.strip() for one in said for name in one.split(",") if name.strip())


def _settings(context: click.Context, option: click.Parameter, said: Sequence[str]) -> dict[str, str]:
    pairs = [one.partition("=") for one in said]
    if not all(name and equals for name, equals, _ in pairs):
        raise click.BadParameter("write NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _settings_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--conf", "settings", multiple=True, callback=_settings, metavar="NAME=VALUE", help="A setting of Spark.")(command)


@click.group(short_help="Spark Declarative Pipelines, kept up to date.")
def pipelines() -> None:
    """Runs a project of pyspark.pipelines, unchanged, as one flow: its tables follow their input instead of being computed anew."""


@pipelines.command(short_help="Update the tables of a project.")
@SPEC
@click.option("--refresh", multiple=True, callback=_names, metavar="TABLES", help="Only update these tables (separated by commas).")
@click.option("--full-refresh", multiple=True, callback=_names, metavar="TABLES", help="Begin these tables anew.")
@click.option("--full-refresh-all", is_flag=True, help="Begin everything anew.")
@click.option("--continuous", is_flag=True, help="Go on: tables follow their input until Ctrl-C.")
@click.option("--remote", metavar="URL", help="Also keep a copy of the state there (s3://..., gs://..., az://..., file:///...).")
@_settings_option
@click.option("--json", "as_json", is_flag=True, help="What became of each table as one JSON object on stdout.")
def run(
    spec: Path | None, refresh: tuple[str, ...], full_refresh: tuple[str, ...], full_refresh_all: bool, continuous: bool,
    remote: str | None, settings: dict[str, str], as_json: bool,
) -> None:  # fmt: skip
    """Take in what is new, changed and gone in the input since the last run, and bring all tables to it at once.

    \b
    nosync pipelines run
    nosync pipelines run --refresh orders,customers
    nosync pipelines run --full-refresh-all
    nosync pipelines run --continuous
    nosync pipelines run --remote s3://bucket/shop
    """
    from nosync.pipelines.running import Wanted, follow_pipeline, run_pipeline, session_for

    wanted = Wanted(refresh, full_refresh, full_refresh_all, remote)
    found = _spec(spec)
    begun = time.monotonic()
    spark = session_for(found, settings)
    started = time.monotonic()

    def say(line: str) -> None:
        click.echo(line, err=True)

    def tell(report: "Report") -> None:
        _tell(found, report, started - begun, time.monotonic() - started, as_json)

    if continuous:
        follow_pipeline(found, spark, tell, wanted, say)
    else:
        tell(run_pipeline(found, spark, wanted, say))


def _tell(spec: Spec, report: "Report", starting: float, seconds: float, as_json: bool) -> None:
    if as_json:
        said = {"pipeline": spec.name, "epoch": report.epoch, "edition": report.edition, "tables": dict(report.outcomes)}
        click.echo(json.dumps(said | {"session_seconds": round(starting, 3), "seconds": round(seconds, 3)}))
        return
    for name, outcome in report.outcomes.items():
        click.echo(f"{name}: {outcome}")
    click.echo(f"epoch {report.epoch}, after {seconds:.1f} s (and {starting:.1f} s until Spark had started)")


@pipelines.command("dry-run", short_help="Say what would be maintained, and what not.")
@SPEC
@_settings_option
def dry_run(spec: Path | None, settings: dict[str, str]) -> None:
    """Read the project and declare its flow without running it: errors show, and for each table whether it is maintained or recomputed
    whole with each run, and why. Nothing is written."""
    from nosync.pipelines.running import planned, session_for

    found = _spec(spec)
    for line in planned(found, session_for(found, settings)).lines:
        click.echo(line)


@pipelines.command(short_help="Make a sample project.")
@click.option("--name", required=True, help="Name of the project and of its folder.")
def init(name: str) -> None:
    """Make the same sample project as `spark-pipelines init`, in a folder of its own."""
    if "/" in name or not name:
        raise Invalid(f'"{name}" is no name for a folder', hint="Use a name without slashes.")
    make_project(Path.cwd(), name)
    click.echo(f"cd '{name}'\nnosync pipelines run")


def _spec(path: Path | None) -> Spec:
    return read_spec(path if path is not None else find_spec(Path(os.getcwd())))
