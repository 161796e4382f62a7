"""Receipts outlive the task that brought them, where what it computed does."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from nosync.model.errors import Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.spark.receipts import Receipt, clear, completed, folder_for, leave, left_in

LAYER = LayerInfo("v", ALL_HASHES, 2, 3, "diffs", "layers/v/0-f/2-3-1.0-0.arrow", 4, 100, "abc")
RECEIPT = Receipt("v", 1, 2, 4, LAYER)
NOTHING = replace(RECEIPT, shard=0, layer=None, range=ALL_HASHES)


def test_what_a_kernel_has_left_is_read_back_but_for_what_is_torn(tmp_path: Path) -> None:
    folder = folder_for(str(tmp_path), "1.ab")
    assert left_in(folder) == []
    for receipt in (RECEIPT, NOTHING):
        leave(folder, receipt)
    for file in Path(folder).iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        file.with_name("torn").write_text(file.read_text()[:-5])
    assert sorted(left_in(folder), key=lambda receipt: receipt.shard) == [NOTHING, RECEIPT]


def test_a_receipt_that_was_handed_in_counts_whatever_failed_attempts_have_left() -> None:
    other = replace(RECEIPT, layer=replace(LAYER, checksum="other"))
    assert completed([RECEIPT], [other, NOTHING, NOTHING]) == [RECEIPT, NOTHING]


def test_what_attempts_have_left_that_differ_is_computed_again() -> None:
    with pytest.raises(Unavailable):
        completed([NOTHING], [RECEIPT, replace(RECEIPT, layer=None)])


def test_only_what_jobs_have_left_is_cleared(tmp_path: Path) -> None:
    clear(str(tmp_path))
    folder = folder_for(str(tmp_path), "1.ab")
    leave(folder, RECEIPT)
    (tmp_path / "receipts/mine").mkdir()
    clear(str(tmp_path))
    assert os.listdir(tmp_path / "receipts") == ["mine"]
