"""The pages for users are true: their programs run as they stand, one block after another, and print what the pages say."""

import contextlib
import io
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n(?:```\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
PAGES = [DOCS / "tutorial.md", DOCS / "from-structured-streaming.md", *sorted((DOCS / "how-to").glob("*.md"))]


def programs(page: Path) -> list[tuple[str, str]]:
    """Each block of Python, with what it prints."""
    return [(text, printed) for language, text, printed in BLOCK.findall(page.read_text()) if language == "python"]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, to run in: files were written in the order of their names."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for number, file in enumerate(sorted((tmp_path / "examples" / "purchases").iterdir())):
        os.utime(file, (1_772_352_000 + number, 1_772_352_000 + number))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_says(quick: SparkSession, clone: Path, monkeypatch: pytest.MonkeyPatch, page: Path) -> None:
    monkeypatch.setattr("nosync.flow.flow.active_or_local", lambda: quick)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: quick)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: quick)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, (text, wanted) in enumerate(programs(page), start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, f"{page.name}, block {number}", "exec"), names)
        assert printed.getvalue() == wanted, f"{page.name}, block {number}"


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    pages = [*PAGES, DOCS / "index.md", DOCS / "reference.md", *DOCS.glob("*.md")]
    assert [page.name for page in pages if str(page.relative_to(DOCS)) not in menu] == []


def test_each_decision_has_a_number_of_its_own_and_says_it() -> None:
    files = sorted((DOCS / "decisions").glob("*.md"))
    assert len({file.name[:4] for file in files}) == len(files)
    assert [file.name for file in files if not file.read_text().startswith(f"# {int(file.name[:4])}. ")] == []
