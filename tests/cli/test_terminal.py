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
from pathlib import Path

import pytest

from tests.security.homes import whole_home

COMMAND = [sys.executable, "-c", "from nosync.cli.main import main; main(prog_name='nosync')"]
FLOW = """
import nosync as ns

flow = ns.Flow("shop")
sales = flow.source("sales", ns.files("in/*.json", schema="item string, amount int", maxFilesPerTrigger=1))
flow.view("totals", sales.groupBy("item").sum("amount"))
flow.sink("out", sales, ns.json("out", mode="append"))
"""


def seen(folder: Path, *arguments: str, columns: int = 130) -> list[str]:
    """The lines that are left on the screen, without colours and what was overwritten; figures as #."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "50", "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
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


@pytest.mark.slow
def test_a_run_shows_its_steps_a_table_of_epochs_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.json").write_text('{"item": "tea", "amount": 2}\n{"item": "pot", "amount": "many"}\n')
    (tmp_path / "flow.py").write_text(FLOW)
    lines = seen(tmp_path, "run", "flow.py", "--home", "home", "--available-now")
    steps = [line for line in lines if line.startswith(("loading", "Spark", "shop:", "to go on"))]
    assert steps == [
        "loading flow.py: Spark starts, then each view is compiled",
        next(line for line in lines if line.startswith("Spark # started after # s; its own pages: http://")),
        "shop: view sales.rejected declared",
        "shop: view totals declared",
        "shop: # views compiled after # s; starting on home",
        next(line for line in lines if line.startswith("shop: begins: # source, # views, # sink, # shard")),
        "shop: # epochs, # rows in # s, # rejected (see the views <source>.rejected); stopped at epoch #, "
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
    assert seen(tmp_path, "watch", "home", "sums", "--once")[0].startswith("sums as of epoch #: # rows; ")


def piped(folder: Path, *arguments: str) -> tuple[list[str], list[str]]:
    """The lines of stdout and of stderr without a terminal; figures as #."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
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
        "shop: view sales.rejected declared",
        "shop: view totals declared",
        "shop: # views compiled after # s; starting on home",
        "shop: # epochs, # rows in # s, # rejected (see the views <source>.rejected); stopped at epoch #, "
        "safe after loss of: process #, host #",
        "to go on: nosync run flow.py --home home",
    ]
    (tmp_path / "in" / "2.json").write_text('{"item": "tea", "amount": 1}\n')
    assert piped(tmp_path, "run", "flow.py", "--home", "home", "--available-now", "--quiet") == ([], [])


def test_looking_without_a_terminal_is_plain_text(tmp_path: Path) -> None:
    shutil.copytree(whole_home(), tmp_path / "home")
    lines = ["sums as of epoch #: # of # rows", "total k", "# d"]
    assert piped(tmp_path, "show", "home", "sums", "--sort=-total", "--limit", "1") == (lines, [])
    assert piped(tmp_path, "show", "home", "sums", "--sort=k", "--format", "csv")[0][0] == '"total","k"'
    assert piped(tmp_path, "list", ".")[0][0].startswith("home flow")
    lines, _ = piped(tmp_path, "watch", "home", "sums", "--once")
    assert lines and all(line.startswith("+ epoch # total=") for line in lines)
