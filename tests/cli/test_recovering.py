"""What people see while a run comes back."""

import io
from dataclasses import dataclass, field

from rich.console import Console

from nosync.cli.recovering import RecoveryDisplay
from nosync.history.status import status_of
from nosync.journal.image import Image
from nosync.model.status import Live, Recovery, Status
from nosync.recovery.restore import Recovered
from nosync.runtime.takeover import Takeover


@dataclass
class Script:
    """A run that has got a bit further at each look."""

    steps: list[Recovery | None]
    recovered: Recovered = field(default_factory=lambda: Recovered(epoch=7, fetched=4, fetched_bytes=2048))
    takeover: Takeover = field(default_factory=Takeover)

    @property
    def status(self) -> Status:
        step = self.steps.pop(0)
        return status_of(Image(), {}, Live("1.a", "recovering" if step else "running", "", recovery=step))


def shown(steps: list[Recovery | None], terminal: bool) -> str:
    screen = Console(file=io.StringIO(), force_terminal=terminal, width=120, highlight=False)
    display = RecoveryDisplay(Script(steps), screen, summary_to_stderr=False)
    while display._run.steps:  # type: ignore[attr-defined]
        display.look()
    return screen.file.getvalue()  # type: ignore[attr-defined]


STEPS = [
    Recovery("looking"),
    Recovery("fetching", 0, 2, 0, 2048),
    Recovery("fetching", 0, 2, 512, 2048),
    Recovery("fetching", 1, 2, 1024, 2048),
]


def test_without_a_terminal_a_line_reports_of_each_shard(capsys) -> None:
    lines = shown([*STEPS, None], terminal=False).splitlines()
    assert lines == ["recovering: 0 of 2 shards, 0.0 of 2.0 KiB (fetching)", "recovering: 1 of 2 shards, 1.0 of 2.0 KiB (fetching)"]
    assert capsys.readouterr().out == "recovered to epoch 7: 4 files fetched from the remote (2.0 KiB of layers)\n"


def test_a_rebuild_says_how_far_it_is_by_tenths(capsys) -> None:
    steps = [Recovery("rebuilding items", 0, 2, tasks_done=done, tasks=20) for done in (0, 1, 3, 4, 19)]
    lines = shown([*steps, None], terminal=False).splitlines()
    assert lines == [f"recovering: 0 of 2 shards, {part}% (rebuilding items)" for part in (0, 15, 20, 95)]


def test_a_terminal_has_a_bar(capsys) -> None:
    assert "1 of 2 shards, 1.0 of 2.0 KiB" in shown([*STEPS, None], terminal=True)


def test_a_quick_start_shows_nothing(capsys) -> None:
    assert shown([Recovery("looking"), None], terminal=True) == ""
