"""What a person sees at a terminal, as a process on a pty: each figure is a number sign here, so that the rest can be compared."""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.security.homes import another_epoch, make_home, whole_home

COMMAND = [sys.executable, "-c", "from nosync.cli.main import main; main(prog_name='nosync')"]
OF_THE_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"  # its Ctrl-C is for the command and all that it started
CTRL_C, CTRL_D = b"\x03", b"\x04"
FLOW = """
import nosync as ns
from pyspark.sql import functions as F

flow = ns.Flow("shop")


@F.udf("int")
def paid(amount):
    if amount == 13:
        raise ValueError("nobody pays 13")
    return amount


sales = flow.source("sales", ns.files("in/*.json", schema="item string, amount int", maxFilesPerTrigger=1))
flow.view("totals", sales.groupBy("item").agg(F.sum(paid("amount")).alias("paid")))
flow.sink("out", sales, ns.json("out", mode="append"))
"""


def seen(folder: Path, *arguments: str, columns: int = 130, keys: Sequence[tuple[Callable[[bytes], bool], bytes]] = ()) -> list[str]:
    """The lines that are left on the screen, without colours and what was overwritten; figures as #. `keys` are pressed one after another,
    each once what is shown is as it says.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "50", "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [*COMMAND[:2], f"{OF_THE_TERMINAL}; {COMMAND[2]}", *arguments]
    ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **ends)  # type: ignore[call-overload]
    os.close(theirs)
    shown, due = b"", list(keys)
    while True:
        if due and due[0][0](shown):
            os.write(ours, due.pop(0)[1])
        try:
            found = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not found:
            break
        shown += found
    os.close(ours)
    assert process.wait(600) == 0, shown.decode()
    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-B0-2]", "", shown.decode())
    lines = (re.sub(r"[\d,.]*\d", "#", line.rpartition("\r")[2].rstrip()) for line in text.replace("\r\n", "\n").split("\n"))
    return [" ".join(line.split()) for line in lines if line]


def has(words: str) -> Callable[[bytes], bool]:
    return lambda shown: words.encode() in shown


@pytest.mark.slow
def test_a_run_shows_its_steps_a_table_of_epochs_and_how_to_go_on_after_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text('{"item": "tea", "amount": 2}\n{"item": "pot", "amount": "many"}\n')
    (tmp_path / "flow.py").write_text(FLOW)
    second = tmp_path / "out" / "epoch-000000000002.json"
    lines = seen(tmp_path, "run", "flow.py", "--home", "home", keys=[(lambda _: second.exists(), CTRL_C)])
    assert "stopping after this epoch" in lines
    steps = [line for line in lines if line.startswith(("loading", "Spark", "shop:", "to go on"))]
    assert steps == [
        "loading flow.py: Spark starts, then each view is compiled",
        next(line for line in lines if line.startswith("Spark # started after # s; its own pages: http://")),
        "shop: view sales.rejected compiled (#)",
        "shop: view totals compiled (#)",
        "shop: # views compiled after # s; starting on home",
        next(line for line in lines if line.startswith("shop: begins: # source, # views, # sink, # shard")),
        "shop: # epochs, # rows in # s, # rejected (nosync show home sales.rejected); stopped at epoch #, "
        "safe after loss of: process #, host #",
        "to go on: nosync run flow.py --home home",
    ]
    table = lines[len(lines) - 1 - lines[::-1].index("epoch rows rejected late ms open compute seal") :]
    assert table[1:3] == ["# # # # # # # #"] * 2
    noise = [line for line in lines if "WARN" in line or "Traceback" in line or "log4j" in line]
    assert [line for line in noise if not line.startswith("WARNING: Using incubator modules")] == []  # the JVM's own word
    assert (tmp_path / "out" / "epoch-000000000001.json").read_text() == '{"item":"tea","amount":2}\n'


def test_status_show_and_watch_are_tables(tmp_path: Path) -> None:
    shutil.copytree(whole_home(), tmp_path / "home")
    status = seen(tmp_path, "status", "home", columns=200)  # however long the name of the host, no line is broken
    assert status[0] == "home home" and any(line.startswith("epoch # computed steps, each a slice of all input") for line in status)
    assert seen(tmp_path, "show", "home", "sums", "--sort=-total", "--limit", "1") == ["sums as of epoch #: # of # rows", "total k", "# d"]
    assert seen(tmp_path, "list", ".") == ["home flow now epoch size", "home shop starting # # KiB"]
    assert seen(tmp_path, "sql", "home", "select k, total from sums where total > 3") == ["k total", "d #"]
    asked = [(has("5> "), b"select count(*) as n from sums;\n"), (lambda shown: shown.count(b"5> ") == 2, b".at 2\n"), (has("2> "), CTRL_D)]
    assert seen(tmp_path, "sql", "home", keys=asked) == ["#> select count(*) as n from sums;", "n", "#", "#> .at #", "#>"]


def test_a_view_is_watched_live_until_ctrl_c(tmp_path: Path) -> None:
    make_home(tmp_path / "home")
    keys = [(grown(tmp_path / "home"), b""), (has("epoch 6"), CTRL_C)]
    lines = seen(tmp_path, "watch", "home", "sums", "--every", "0.1", keys=keys)
    assert lines[:2] == ["sums as of epoch #: # rows; Starting", "total k"]
    assert lines[-10:] == [*lines[:2], "- # a", "- # b", "- # c", "- # d", "+ # a", "+ # b", "+ # c", "+ # d"]


def grown(home: Path) -> Callable[[bytes], bool]:
    """Once the first epoch is shown, there is one more."""

    def grow(shown: bytes) -> bool:
        if b"epoch 5" in shown:
            another_epoch(home)
        return b"epoch 5" in shown

    return grow


def piped(folder: Path, *arguments: str, code: int = 0) -> tuple[list[str], list[str]]:
    """The lines of stdout and of stderr without a terminal; figures as #."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, done.stderr
    out, errors = ([" ".join(re.sub(r"[\d,.]*\d", "#", line).split()) for line in text.splitlines()] for text in (done.stdout, done.stderr))
    return out, [line for line in errors if "incubator modules" not in line]  # the JVM's own word


@pytest.mark.slow
def test_without_a_terminal_an_epoch_is_a_line_and_all_else_goes_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text('{"item": "tea", "amount": 2}\n{"item": "pot", "amount": "many"}\n')
    (tmp_path / "flow.py").write_text(FLOW)
    epochs, steps = piped(tmp_path, "run", "flow.py", "--home", "home", "--available-now")
    assert [re.sub(r"safe:.*", "safe", line) for line in epochs] == ["epoch # # rows # ms (open #, compute #, seal #) # rejected safe"] * 2
    by_chance = ("Spark #", "shop: begins", "WARN", "Computing epoch")  # the last of a step that takes long, on a busy machine
    assert [line for line in steps if not line.startswith(by_chance)] == [
        "loading flow.py: Spark starts, then each view is compiled",
        "shop: view sales.rejected compiled (#)",
        "shop: view totals compiled (#)",
        "shop: # views compiled after # s; starting on home",
        "shop: # epochs, # rows in # s, # rejected (nosync show home sales.rejected); stopped at epoch #, "
        "safe after loss of: process #, host #",
        "to go on: nosync run flow.py --home home",
    ]
    (tmp_path / "in" / "2.json").write_text('{"item": "tea", "amount": 1}\n')
    assert piped(tmp_path, "run", "flow.py", "--home", "home", "--available-now", "--quiet") == ([], [])
    (tmp_path / "in" / "3.json").write_text('{"item": "tea", "amount": 13}\n')
    epochs, steps = piped(tmp_path, "run", "flow.py", "--home", "home", "--available-now", code=1)
    assert epochs == [] and [line for line in steps if "compiled (" in line] == [
        "shop: view sales.rejected compiled (# of #)", "shop: view totals compiled (# of #)",
    ]  # fmt: skip
    failed = steps.index('Error: a function in view "totals" raised an error in epoch #:')
    assert [re.sub('".*flow.py"', "flow.py", line) for line in steps[failed + 1 :]] == [
        "Traceback (most recent call last):", "File flow.py, line #, in paid", 'raise ValueError("nobody pays #")',
        "ValueError: nobody pays #",
        "The state is whole up to epoch #: correct the program and start it again on the same home.",
    ]  # fmt: skip


def test_looking_without_a_terminal_is_plain_text(tmp_path: Path) -> None:
    shutil.copytree(whole_home(), tmp_path / "home")
    lines = ["sums as of epoch #: # of # rows", "total k", "# d"]
    assert piped(tmp_path, "show", "home", "sums", "--sort=-total", "--limit", "1") == (lines, [])
    assert piped(tmp_path, "show", "home", "sums", "--sort=k", "--format", "csv")[0][0] == '"total","k"'
    assert piped(tmp_path, "list", ".")[0][0].startswith("home flow")
    lines, _ = piped(tmp_path, "watch", "home", "sums", "--once")
    assert lines and all(line.startswith("+ epoch # total=") for line in lines)
