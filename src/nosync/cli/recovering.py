"""Shows how a run comes back: a bar on a terminal, a line now and then elsewhere, and what it took in one line at the end."""

from typing import Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from nosync.cli.output import size
from nosync.model.status import Recovery, Status
from nosync.recovery.restore import Recovered
from nosync.runtime.takeover import Takeover, taken_over


class Recovering(Protocol):
    """What watching needs of a run."""

    @property
    def status(self) -> Status: ...
    @property
    def recovered(self) -> Recovered: ...
    @property
    def takeover(self) -> Takeover: ...


class RecoveryDisplay:
    """Looks at a run until it has recovered, and what is new in its program has joined. The bar and its lines go to stderr; the summary too
    where stdout is for programs.
    """

    def __init__(self, run: Recovering, screen: Console, summary_to_stderr: bool, quiet: bool = False) -> None:
        self._run, self._screen, self._to_stderr, self._quiet = run, screen, summary_to_stderr, quiet
        self._bar: tuple[Progress, TaskID] | None = None
        self._shown: Recovery | None = None
        self._recovered = self._over = False

    def look(self) -> None:
        """Called again and again."""
        status = self._run.status if not self._over else None
        if status is None:
            return
        if status.phase in ("starting", "recovering"):
            self._show(status.recovery)
            return
        self._end_bar()
        if status.phase == "failed" or self._quiet:
            self._over = True
            return
        if not self._recovered:
            self._recovered = True
            self._say(in_words(self._run.recovered))
        if status.recovery is None:
            self._over = True
            self._say(taken_over(self._run.takeover))
        elif not self._screen.is_terminal:  # there the live table says it
            self._show(status.recovery)

    def close(self) -> None:
        self._over = True
        self._end_bar()

    def _say(self, line: str) -> None:
        if line:
            click.echo(line, err=self._to_stderr)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None

    def _show(self, recovery: Recovery | None) -> None:
        if recovery is None or not recovery.shards:
            return
        if self._screen.is_terminal:
            progress, task = self._bar = self._bar or self._started()
            progress.update(task, completed=recovery.part, description=f"recovering: {recovery}")
        elif self._shown is None or _steps(self._shown) != _steps(recovery):
            self._screen.print(f"recovering: {recovery}", markup=False, highlight=False)
            self._shown = recovery

    def _started(self) -> tuple[Progress, TaskID]:
        progress = Progress(BarColumn(), TextColumn("{task.description}", markup=False), console=self._screen, transient=True)
        progress.start()
        return progress, progress.add_task("recovering", total=1.0)


def _steps(recovery: Recovery) -> tuple[int, int]:
    """What makes a new line: a shard more, or a tenth of the tasks."""
    return recovery.shards_done, int(10 * recovery.part) if recovery.tasks else 0


def in_words(recovered: Recovered) -> str:
    """What it took to come back, in one line; empty when nothing was missing."""
    done = []
    if recovered.fetched:
        done.append(f"{recovered.fetched:,} files fetched from the remote ({size(recovered.fetched_bytes)} of layers)")
    if recovered.recomputed:
        done.append(f"{recovered.recomputed:,} layers of {recovered.recomputed_epochs:,} epochs recomputed")
    if recovered.rolled_back:
        done.append(f"{recovered.rolled_back:,} epochs rolled back, whose input was lost")
    if recovered.different:
        done.append(f"{', '.join(recovered.different)} came out differently than before: a function or source is not deterministic")
    return f"recovered to epoch {recovered.epoch}: {', '.join(done)}" if done else ""

