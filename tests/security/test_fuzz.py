"""Hostile bytes never end the process and never surface as anything but an error of this library. `make fuzz` tries many more."""

import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from nosync.journal.chain import read_chain, read_rollup
from nosync.journal.entries import Opened, RolledBack
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS
from nosync.journal.record import decode, unpack
from nosync.model.errors import Corrupt
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.state.layer import open_layer, verify
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from tests.security.formats import RECORDS as WHOLE
from tests.security.formats import layer_bytes, resigned, with_checksum
from tests.security.mutations import signed

ROUNDS = 20


def test_hostile_bytes_of_every_format_are_answered_by_an_error_of_ours() -> None:
    """In a process of its own: one that dies says so by its code."""
    command = [sys.executable, "-m", "tests.security", "--rounds", str(ROUNDS)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-200:]


def test_a_record_that_is_whole_and_says_nothing_we_know_is_named_and_not_cut_off() -> None:
    """A journal of another version must not lose its end because this one cannot read it."""
    with pytest.raises(Corrupt, match="record 1 of the journal"):
        list(decode(signed([b'{"entry":"invented","epoch":1}']), 1, "-"))
    with pytest.raises(Corrupt, match="record 1 of the journal"):
        list(decode(signed([b'{"entry":"rolledback","epoch":"1"}']), 1, "-"))


def test_a_damaged_header_ends_the_chain_as_a_torn_record_does() -> None:
    content = WHOLE[0].content
    assert list(decode(content.replace(b" 1 ", b" x ", 2), 1, "-")) == []
    assert list(decode(b"nosync 1 1 1.ab - \xff \xff\n", 1, "-")) == []


def test_a_rollup_that_is_whole_and_says_nothing_we_know_is_named() -> None:
    with pytest.raises(Corrupt, match="journal/rollups/7"):
        read_rollup(with_checksum(b'{"number":1}'), "journal/rollups/7")


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nosync.journal.record.LARGEST", 1 << 20)
    assert unpack(zlib.compress(bytes(1 << 20))) == bytes(1 << 20)
    assert unpack(zlib.compress(bytes(64 << 20))) is None


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "layers/../../outside", "a//b", "a\0b", "."])
def test_no_name_in_a_journal_leads_out_of_the_home(name: str, tmp_path: Path) -> None:
    for store in (LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri())):
        for call in (store.read, store.delete, store.exists, lambda name, store=store: store.replace(name, b"x")):
            with pytest.raises(Corrupt, match="no name of a file in a home"):
                call(name)
    with pytest.raises(ValueError):
        LayerInfo.from_json(LayerInfo("v", ALL_HASHES, 1, 2, "diffs", name, 1, 1, "00").to_json())
    with pytest.raises(Corrupt):
        list(decode(signed([b'{"entry":"opened","epoch":1,"at":0.0,"slices":{},"files":{"../x":"00"}}']), 1, "-"))


def test_files_of_others_in_the_journals_folders_are_left_alone(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    journal = Journal(disk, None, this_process(0.0))
    journal.append(Opened(1, 0.0, {}), RolledBack(0))
    for name in ("journal/records/README", "journal/records/0000000000000003 (copy)", "journal/rollups/x-y", "runs/notes.txt"):
        disk.replace(name, b"mine")
    assert read_chain(disk).number == journal.number
    Journal(disk, None, this_process(0.0)).append(Opened(1, 0.0, {}))
    assert len([name for name in disk.sizes(RECORDS) if disk.read(name) == b"mine"]) == 2


def test_offsets_that_lead_out_of_a_block_are_found_though_every_checksum_is_right(tmp_path: Path) -> None:
    """Followed, they end the process."""
    info, content = layer_bytes(Random(1), tmp_path)
    (tmp_path / info.path).write_bytes(content)
    words = open_layer(tmp_path, info).raw[0].column("c0" if info.kind == "diffs" else "k0")
    offsets = words.buffers()[1].to_pybytes()
    assert content.count(offsets) == 1 and len(words) > 2
    hostile = np.frombuffer(offsets, np.int32).copy()
    hostile[1] = 1 << 30
    changed, forged = resigned(content.replace(offsets, hostile.tobytes()), info)
    assert forged.checksum != info.checksum
    (tmp_path / info.path).write_bytes(changed)
    with pytest.raises(Corrupt, match="block 0"):
        verify(open_layer(tmp_path, forged))
    doubted = open_layer(tmp_path, forged)
    doubted.doubt()
    for read in (lambda: doubted.hashes(0), lambda: doubted.column(0, "_hash"), lambda: list(doubted.verified())):
        with pytest.raises(Corrupt, match="block 0"):
            read()


def test_a_type_that_would_bring_code_along_stays_bytes(tmp_path: Path) -> None:
    """Arrow once unpickled types of its own from files."""
    info, _ = layer_bytes(Random(1), tmp_path)
    metadata = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": "cos\nsystem\n(S'exit 3'\ntR."}
    field = pa.field("c0", pa.int64(), metadata=metadata)
    schema = pa.schema([pa.field("_hash", pa.uint64()), field], metadata={"format": "2"})
    with pa.OSFile(str(tmp_path / info.path), "wb") as sink, pa.ipc.new_file(sink, schema):
        pass
    with pytest.raises(Corrupt):
        open_layer(tmp_path, replace(info, bytes=(tmp_path / info.path).stat().st_size))
