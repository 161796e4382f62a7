"""`nosync fsck HOME`: layers and journal held against each other, in plain words. Changes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from nosync.cli.output import listed, print_json, size, text_of, visible
from nosync.model.errors import NosyncError
from nosync.model.identifiers import Epoch, Shard, TraceName
from nosync.model.run import this_process
from nosync.model.shards import shards_in
from nosync.model.text import counted
from nosync.recovery.check import Findings, Holding, Records, check
from nosync.recovery.plan import Plan
from nosync.recovery.recompute import Recompute
from nosync.recovery.verdict import LOST, REPAIRABLE, WHOLE, Epochs, Verdict, judge
from nosync.sources.inspection import Obstacle, obstacles
from nosync.store.objects import open_remote

TITLES = {
    WHOLE: "The newest state is whole.",
    REPAIRABLE: "The newest state is not whole; a start on this home repairs it.",
    LOST: "Something is lost for good.",
}
STOPPED = "The next start would stop: it needs input that cannot be read."


class CannotCheck(click.ClickException):
    """Nothing could be checked."""

    exit_code = LOST


@click.command(short_help="Check layers and journal against each other.")
@click.argument("home", type=click.Path(file_okay=False, path_type=Path))
@click.option("--remote", metavar="URL", help="Check the copy there too.")
@click.option("--quick", is_flag=True, help="Compare names and sizes only; do not read the layers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def fsck(home: Path, remote: str | None, quick: bool, as_json: bool) -> None:
    """Check layers and journal in HOME against each other. Nothing is changed, and a run is not disturbed.

    Exit code 0: the newest state is whole. 1: the next start repairs it. 2: something is lost for good, the next start would stop, or
    nothing could be checked.
    """
    try:
        findings = check(home, open_remote(remote) if remote else None, this_process(0.0).boot, quick)
        verdict = judge(findings)
        in_the_way = obstacles(findings.image, verdict.next, quick) if verdict.next else []
    except NosyncError as error:
        raise CannotCheck(text_of(error)) from error
    if as_json:
        print_json(facts(findings, verdict, in_the_way))
    else:
        for line in words(findings, verdict, in_the_way, quick):
            click.echo(visible(line))
    raise SystemExit(code(verdict, in_the_way))


def code(verdict: Verdict, in_the_way: Sequence[Obstacle]) -> int:
    """That of the verdict; worse where a start meets files that are not as they were."""
    return max([verdict.code, *(LOST if obstacle.computed else REPAIRABLE for obstacle in in_the_way)])


def facts(findings: Findings, verdict: Verdict, in_the_way: Sequence[Obstacle] = ()) -> dict[str, Any]:
    """The same for programs."""
    tiers = {name: _tier(findings.records[name], findings.holdings[name]) for name in findings.records}
    return {
        "code": code(verdict, in_the_way),
        "epoch": findings.image.epoch,
        "opened": findings.image.last_opened,
        "tiers": tiers,
        "recordsToCopy": findings.lacking,
        "forgotten": findings.forgotten,
        "unreadable": verdict.unreadable,
        "inTheWay": [asdict(obstacle) for obstacle in in_the_way],
        "skipped": findings.image.skipped,
        "next": _steps(findings, verdict.next),
        "withoutDisk": _steps(findings, verdict.without_disk),
    }


def _tier(records: Records, held: Holding) -> dict[str, Any]:
    text = {name: getattr(records, name) for name in ("number", "base", "behind", "generations", "rollups", "segments")}
    text |= {name: getattr(held, name) for name in ("layers", "bytes", "inputs", "missing", "orphans")}
    return text | {"damaged": [*records.damaged, *held.damaged]}


def _steps(findings: Findings, chosen: Plan | None) -> dict[str, Any] | None:
    if chosen is None:
        return None
    jobs = [{"first": job.first, "last": job.last, "shards": _shards(findings, job)} for job in chosen.jobs]
    return {"epoch": chosen.epoch, "opened": chosen.opened, "fetch": chosen.fetch, "recompute": jobs, "lost": chosen.lost}


def words(findings: Findings, verdict: Verdict, in_the_way: Sequence[Obstacle] = (), quick: bool = False) -> Iterator[str]:
    """Everything for people, line by line; the verdict comes first."""
    stopped = verdict.code < LOST and any(obstacle.computed for obstacle in in_the_way)
    yield STOPPED if stopped else TITLES[code(verdict, in_the_way)]
    yield from (f"  {line}" for line in (*_met(in_the_way), *_next(findings, verdict)))
    for name in findings.records:
        yield ""
        yield name
        yield from (f"  {line}" for line in _journal(findings.records[name]))
        yield from (f"  {line}" for line in _files(findings, name, quick))
    yield ""
    yield "views"
    yield from (f"  {view}: {_readable(findings.image.epoch, epochs)}" for view, epochs in verdict.unreadable.items())


def _met(in_the_way: Sequence[Obstacle]) -> Iterator[str]:
    """The files that are not as they were, and what becomes of them."""
    for one in in_the_way:
        file = f'file "{one.file}" of source "{one.source}", epoch {one.epoch}, {one.reason}'
        way_out = f'Put it back, or set it aside: nosync skip HOME "{one.source}" "{one.file}"'
        yield f"{file}. {way_out}" if one.computed else f"{file}: it is recorded anew, or rejected."


def _next(findings: Findings, verdict: Verdict) -> Iterator[str]:
    if findings.holdings["home"].damaged:
        yield "A start compares sizes, not bytes: delete the damaged files of the home first, so that it replaces them."
    yield f"The next start will {_do(findings, verdict.next, verdict.code)}"
    if "remote" in findings.holdings:
        alone = verdict.without_disk
        yield f"If the home were lost, a start would {_do(findings, alone, REPAIRABLE if alone else LOST)}"
    for source, names in findings.image.skipped.items():
        yield f'Of source "{source}", set aside for good: {listed(tuple(names))}.'
    if findings.forgotten:
        yield f"Of the past, {findings.forgotten}."


def _do(findings: Findings, chosen: Plan | None, code: int) -> str:
    if chosen is None:
        return "not be able to put the state together: layers are gone on every tier, and their input was trimmed."
    if code == WHOLE:
        return f"go on after epoch {chosen.epoch}; there is nothing to repair."
    steps = [f"copy {findings.lacking} records from the remote"] if findings.lacking else []
    if chosen.opened < findings.image.last_opened:
        steps.append(f"roll back {_epochs(chosen.opened + 1, findings.image.last_opened)}, whose input is gone")
    if chosen.fetch:
        steps.append(f"fetch {counted(len(chosen.fetch), 'file')} from the remote")
    for job in chosen.jobs:
        parts = ", ".join(f"{_listed_shards(shards)} of {trace}" for trace, shards in sorted(_shards(findings, job).items()))
        steps.append(f"recompute {_epochs(job.first, job.last)} in {parts}")
    if chosen.lost and not chosen.fetch and not chosen.jobs:
        steps.append(f"read other layers in place of {counted(len(chosen.lost), 'layer')} gone everywhere")
    return ", ".join([*steps, f"then go on after epoch {chosen.epoch}."])


def _journal(records: Records) -> Iterator[str]:
    rolled = f", rolled up to {records.base:,}" if records.base else ""
    yield f"journal: whole up to record {records.number:,}{rolled}; {counted(records.generations, 'run')} so far"
    if records.rollups or records.segments:
        yield f"past: {counted(records.rollups, 'roll-up')}, {counted(records.segments, 'segment')}"
    if records.behind:
        yield f"behind the end of the journal: {listed(records.behind)} (torn, or of a run that was fenced; counts for nothing)"
    if records.damaged:
        yield f"damaged: {listed(records.damaged)}"


def _files(findings: Findings, name: str, quick: bool) -> Iterator[str]:
    held = findings.holdings[name]
    checked = "names and sizes were compared" if quick and name == "home" else "names were compared" if quick else "all blocks were read"
    yield f"layers: {held.layers:,} of {len(findings.image.layers()):,} are there and whole, {size(held.bytes)} ({checked})"
    if held.inputs:
        yield f"input logs: {counted(held.inputs, 'file')}"
    if held.missing and name == "remote":
        yield f"not there: {counted(len(held.missing), 'file')} (merged layers stand for many; the newest may be on their way)"
    elif held.missing:
        yield f"missing: {listed(held.missing)}"
    if held.damaged:
        yield f"damaged: {listed(held.damaged)}"
    if held.orphans:
        yield f"named by no record: {counted(len(held.orphans), 'layer')} (harmless: swept later, or about to be recorded)"


def _readable(newest: Epoch, missing: Epochs) -> str:
    if not newest:
        return "no epoch yet"
    if not missing:
        return f"every epoch can be read, {_epochs(1, newest)}"
    return f"cannot be read here as of {', '.join(_epochs(first, last) for first, last in missing)}; newest epoch {newest}"


def _epochs(first: int, last: int) -> str:
    return f"epoch {first}" if first == last else f"epochs {first} to {last}"


def _shards(findings: Findings, job: Recompute) -> dict[TraceName, list[Shard]]:
    """By trace, the shards that a job computes again."""
    count = findings.image.declared.shards if findings.image.declared else 1
    return {trace: shards_in(ranges, count) for trace, ranges in job.targets.items()}


def _listed_shards(shards: list[Shard]) -> str:
    return ("shard " if len(shards) == 1 else "shards ") + ", ".join(map(str, shards))
