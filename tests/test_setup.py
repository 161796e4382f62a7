"""`tools/setup.sh` leaves alone what is not its own."""

import subprocess
from pathlib import Path

SETUP = Path(__file__).parents[1] / "tools" / "setup.sh"


def test_a_linked_environment_of_another_tree_is_not_cleared(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").write_text("mine")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".venv").symlink_to(tmp_path / "other")
    done = subprocess.run(["bash", SETUP, ".venv"], cwd=tmp_path / "tree", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and "leads out of this tree" in done.stderr
    assert (tmp_path / "other" / "kept").read_text() == "mine"
