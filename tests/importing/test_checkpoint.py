"""What a checkpoint's files say."""

import json

import pytest

from nosync.importing.checkpoint import read_checkpoint
from nosync.model.errors import Invalid


def write(file, *lines):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["v1", *lines]))


def files(folder, batch, *names):
    write(folder / str(batch), *(json.dumps({"path": f"file:///in/{name}", "timestamp": 1, "batchId": int(name[0])}) for name in names))


@pytest.fixture
def folder(tmp_path):
    """Three batches, the last of which was not committed; the first two batches of files are compacted."""
    for batch in range(3):
        write(tmp_path / "offsets" / str(batch), "{}", json.dumps({"logOffset": batch}), json.dumps({"t": {"0": 10 * batch}}), "-")
    for batch in range(2):
        write(tmp_path / "commits" / str(batch), json.dumps({"nextBatchWatermarkMs": 5 + batch}))
    files(tmp_path / "sources" / "0", "1.compact", "0 a", "1 b")
    files(tmp_path / "sources" / "0", "2", "2 c")
    write(tmp_path / "sources" / "1" / "0", "{}")
    return tmp_path


def test_the_last_committed_batch_counts(folder):
    found = read_checkpoint(folder)
    assert (found.batch, found.watermark, found.planned) == (1, 6000, True)
    assert found.sources[0].files == ("file:///in/0 a", "file:///in/1 b")
    assert found.sources[1].offset == '{"t": {"0": 10}}'
    assert (found.sources[1].files, found.sources[1].kept) == (None, {"0": "v1\n{}"})
    assert found.sources[2] is None


def test_a_folder_that_is_no_checkpoint_is_said_to_be_none(tmp_path):
    with pytest.raises(Invalid, match="is no checkpoint of a streaming query"):
        read_checkpoint(tmp_path)


def test_without_a_commit_there_is_nothing_to_go_on_from(folder):
    for file in (folder / "commits").iterdir():
        file.unlink()
    with pytest.raises(Invalid, match=r"no batch of .* was committed"):
        read_checkpoint(folder)


def test_a_format_of_another_version_is_refused(folder):
    (folder / "offsets" / "1").write_text("v2\n{}")
    with pytest.raises(Invalid, match="has version 'v2'"):
        read_checkpoint(folder)


def test_a_line_that_is_no_json_is_said_with_its_file(folder):
    write(folder / "commits" / "1", "not json")
    with pytest.raises(Invalid, match=r"commits.1"):
        read_checkpoint(folder)
