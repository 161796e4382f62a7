"""The README is true: its programs run as they stand and print what it says, and the names it gives exist."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import nosync as ns
from nosync.cli.main import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = re.findall(r"^nosync .*", README + (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)


def block(words: str) -> tuple[str, str]:
    """The program that contains the words, and the block after it."""
    place = next(i for i, (language, text) in enumerate(BLOCKS) if language == "python" and words in text)
    return BLOCKS[place][1], BLOCKS[place + 1][1]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the examples, as in a clone: files were written in the order of their names."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for number, file in enumerate(sorted((folder / "examples" / "purchases").iterdir())):
        os.utime(file, (1_772_352_000 + number, 1_772_352_000 + number))
    return folder


PROGRAMS = ["flow.start", "ns.open"]  # the second looks at what the first has left; those of other pages run in `test_docs`
ONE_AFTER_ANOTHER = """
import sys
from pathlib import Path

for file in sys.argv[1:]:
    with open(file + ".out", "w") as sys.stdout:
        exec(compile(Path(file).read_text(), file, "exec"), {"__name__": "__main__"})
"""


@pytest.fixture(scope="module")
def printed(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each program prints. They run one after another in one process: starting Spark for each would take most of the time."""
    files = {words: tmp_path_factory.mktemp("program") / "program.py" for words in PROGRAMS}
    for words, file in files.items():
        file.write_text(block(words)[0])
    command = [sys.executable, "-c", ONE_AFTER_ANOTHER, *map(str, files.values())]
    done = subprocess.run(command, cwd=shop, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return {words: Path(f"{file}.out").read_text() for words, file in files.items()}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("words", PROGRAMS)
def test_the_programs_print_what_the_readme_says(printed: dict[str, str], words: str) -> None:
    assert printed[words] == block(words)[1]


def test_the_example_is_the_first_program() -> None:
    assert (ROOT / "examples" / "shop.py").read_text() == block("flow.start")[0]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_public_names_in_the_documents_exist(document: Path) -> None:
    text = document.read_text()
    assert set(re.findall(r"\bns\.(\w+)", text)) <= set(ns.__all__)
    attributes = set(re.findall(r"\brun\.(\w+)", text))
    assert [name for name in sorted(attributes) if not hasattr(ns.Run, name)] == []
    assert [name for name in set(re.findall(r"\bflow\.(\w+)\(", text)) if not hasattr(ns.Flow, name)] == []


def test_what_is_called_missing_is_missing() -> None:
    assert not hasattr(ns.Run, "branch")


def test_every_word_listed_for_a_run_is_one_of_its_names() -> None:
    listed = re.search(r"\*\*A run is what PySpark users know\*\*:(.*?)\.\n", README, re.DOTALL)
    assert listed
    assert [name for name in re.findall(r"`(\w+)`", listed[1]) if not hasattr(ns.Run, name)] == []


@pytest.mark.parametrize("line", dict.fromkeys(COMMANDS))
def test_commands_and_their_options_exist(line: str) -> None:
    words = line.split()[1:]
    within = words[:2] if isinstance(main.commands[words[0]], click.Group) else words[:1]
    shown = CliRunner().invoke(main, [*within, "--help"])
    assert shown.exit_code == 0
    assert [option for option in re.findall(r"--[\w-]+", line) if option not in shown.output] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_the_documents_name_exist(document: Path) -> None:
    named = re.findall(r"`((?:src|docs|tests|examples|tools)/[\w/.-]+)`", document.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|^)make (\w+)", README, re.MULTILINE))))
def test_make_has_the_targets(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
