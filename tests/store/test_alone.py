"""What two processes of one home do not do at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from nosync.model.errors import Unavailable
from nosync.store.alone import alone_in

HOLDING = """
import sys
from pathlib import Path
from nosync.store.alone import alone_in

with alone_in(Path(sys.argv[1])):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_one_is_in_a_folder_and_its_end_lets_the_next_one_in(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", HOLDING, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdin is not None and other.stdout is not None
    with other.stdin, other.stdout:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(Unavailable, match="another process is just starting a flow"), alone_in(tmp_path, patience_seconds=0.0):
            pass
        other.kill()
        other.wait()
    with alone_in(tmp_path, patience_seconds=0.0):
        pass
    assert list(tmp_path.iterdir()) == []
