"""Layers on disk: written once, memory-mapped ever after.

A layer is an uncompressed Arrow IPC file. Its record batches are the *blocks*; the rows ascend by `_hash` (uint64) over the whole file.

    schema metadata   format "3", flow, trace, range (of hashes, see `hash_range`), lower, upper (epochs), run,
                      kind ("upserts" or "diffs"), rounds "0" (reserved)
    upserts           _hash, k0, k1, ... (the key, unique in the layer), n int64 (0 is a tombstone), additive and best columns
    diffs             _hash, _row uint64, payload columns, _count int64 (signed, never 0)
    _bloom uint8      last, in layers that are mostly asked for what they do not have: the Bloom filter of the block (see `bloom`)
    block metadata    checksum (xxh3-64 hex of the serialised batch), rows, first and last hash

Columns of upserts are sparse: a missing additive column is 0 in every row, a missing best column is null. A block is never empty;
a layer may be. The layer's checksum covers names, types and block checksums, not the metadata: two attempts at the same work agree on it.

Promise: a file of the wrong length is refused before it is mapped, since touching a truncated mapping kills the process. Opening costs
O(blocks); `verify` is for whoever reads all of it anyway, or from a tier that may have changed the bytes. Nothing here waits for an fsync.
"""

import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from nosync.model.columns import BLOOM, COUNT, HASH, ROW
from nosync.model.errors import Corrupt, reading
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Kind, LayerInfo
from nosync.state.bloom import LEAST_ROWS, Words, bloom_of, words_of
from nosync.state.canonical import rows_equal
from nosync.state.private import make_folder, open_private

FORMAT = "3"
ROWS_IN_GROUP = "n"
# Kinds of columns that hold a chosen value rather than a sum, by the letters that their names begin with: absent means null, not 0.
CHOSEN = frozenset({"min", "max", "and", "or", "value"})
RECOVER = "Recover the layer from another tier."

Hashes = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]

_BARE = {
    "upserts": pa.schema([pa.field(HASH, pa.uint64()), pa.field(ROWS_IN_GROUP, pa.int64())]),
    "diffs": pa.schema([pa.field(HASH, pa.uint64()), pa.field(ROW, pa.uint64()), pa.field(COUNT, pa.int64())]),
}


class Layer:
    """An open layer. Columns are views of the mapped file: reading a few rows touches a few pages. `blocks` are without Bloom filters."""

    def __init__(self, info: LayerInfo, schema: pa.Schema, blocks: list[pa.RecordBatch], checksums: list[str]) -> None:
        self.info = info
        self.stored = schema
        self.raw = blocks
        self.with_bloom = schema.names[-1:] == [BLOOM]
        self.schema = schema.remove(len(schema) - 1) if self.with_bloom else schema
        self.blocks = [block.select(self.schema.names) for block in blocks] if self.with_bloom else blocks
        self.checksums = checksums
        self.inode = 0
        self.derived = False
        self._doubted: set[int] | None = None
        self.rows: int = sum(block.num_rows for block in blocks)
        self._columns = {name: index for index, name in enumerate(schema.names)}
        self._hashes: list[Hashes] = [block.column(0).to_numpy(zero_copy_only=True) for block in blocks]
        self.firsts: Hashes = np.array([hashes[0] for hashes in self._hashes], dtype=np.uint64)
        self.lasts: Hashes = np.array([hashes[-1] for hashes in self._hashes], dtype=np.uint64)

    @staticmethod
    def in_memory(layer: "Layer", schema: pa.Schema, blocks: list[pa.RecordBatch]) -> "Layer":
        """What was made of a layer that is verified: other blocks, which need no look at any disk."""
        found = Layer(layer.info, schema, blocks, [])
        found.inode, found.derived, found._doubted = layer.inode, True, set()
        return found

    @staticmethod
    def just_written(home: Path | str, info: LayerInfo, batch: pa.RecordBatch) -> "Layer":
        """A layer of one block whose file this process has written a moment ago, without a look at the file."""
        found = Layer(info, batch.schema, [batch], [])
        found.inode, found.derived, found._doubted = os.stat(f"{home}/{info.path}").st_ino, True, set()
        return found

    def doubt(self) -> None:
        """From here on each block is verified the first time it is searched. Says nothing new of a layer that was doubted before."""
        if self._doubted is None:
            self._doubted = set(range(len(self.blocks)))

    def raw_hashes(self, block: int) -> Hashes:
        """The block's hashes as they are, verified or not."""
        return self._hashes[block]

    def hashes(self, block: int) -> Hashes:
        """The block's hashes, ascending, without a copy."""
        self._verify_doubted(block)
        return self._hashes[block]

    def bloom(self, block: int) -> tuple[Words, np.uint64, np.uint64]:
        """The words of the block's Bloom filter, without a copy, and the first and last of the hashes that it was made of."""
        self._verify_doubted(block)
        words = words_of(self.raw[block].column(len(self.stored) - 1).to_numpy(zero_copy_only=True))
        return words, self.firsts[block], self.lasts[block]

    def _verify_doubted(self, block: int) -> None:
        if self._doubted and block in self._doubted:
            verify_block(self, block)
            self._doubted.discard(block)

    def verified(self) -> Iterator[pa.RecordBatch]:
        """All blocks, each verified first where that is still to be done."""
        for number, block in enumerate(self.blocks):
            self._verify_doubted(number)
            yield block

    def column(self, block: int, name: str) -> pa.Array | None:
        """The column in one block; None when the layer does not carry it."""
        self._verify_doubted(block)
        index = self._columns.get(name)
        return None if index is None else self.blocks[block].column(index)


def write_layer(
    home: Path | str,
    path: str,
    blocks: Iterable[pa.RecordBatch],
    *,
    flow: str,
    trace: TraceName,
    range: HashRange,
    lower: Epoch,
    upper: Epoch,
    kind: Kind,
    run: str,
    schema: pa.Schema | None = None,
    with_bloom: bool = False,
) -> LayerInfo:
    """Write the blocks, in order, and give the facts a receipt carries. The name appears whole or not at all, but is not fsynced.

    `schema` matters only where there may be no block to take it from. `with_bloom`: with a Bloom filter for each block, unless it is small.
    """
    facts = {"format": FORMAT, "flow": flow, "trace": trace, "range": str(range), "lower": str(lower), "upper": str(upper),
             "kind": kind, "run": run, "rounds": "0"}  # fmt: skip
    remaining = iter(blocks)
    first = next(remaining, None)
    if with_bloom and first is not None and first.num_rows >= LEAST_ROWS:
        first, remaining, schema = _sieved(first), map(_sieved, remaining), None
    bare = (schema or (first.schema if first is not None else _BARE[kind])).remove_metadata()
    target = Path(home) / path
    make_folder(target.parent)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        rows, checksums = _write_blocks(temporary, bare.with_metadata(facts), first, remaining)
        size = temporary.stat().st_size
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return LayerInfo(trace, range, lower, upper, kind, path, rows, size, _whole_checksum(bare, checksums))


def open_layer(home: Path | str, info: LayerInfo) -> Layer:
    """Map the layer. Raises `Corrupt` when the file is missing, has another length, or is not the layer that `info` describes."""
    file = Path(home) / info.path
    try:
        facts = file.stat()
    except FileNotFoundError:
        raise Corrupt(f'layer "{info.path}" is missing', RECOVER) from None
    if facts.st_size != info.bytes or not stat.S_ISREG(facts.st_mode):
        raise Corrupt(f'layer "{info.path}" has {facts.st_size} bytes instead of {info.bytes}', RECOVER)
    with reading(f'layer "{info.path}"', RECOVER):
        try:
            layer = _map(file, info)
        except OSError as error:  # Arrow's word for a file that is cut off
            raise Corrupt(f'layer "{info.path}" is not readable: {error}', RECOVER) from error
        _check_facts(layer)
        _check_columns(layer)
    layer.inode = facts.st_ino
    return layer


def verify(layer: Layer) -> Layer:
    """Read every byte of the layer and compare checksums; `Corrupt` names the file and the block that changed."""
    if layer.derived:
        return layer
    for block in range(len(layer.blocks)):
        verify_block(layer, block)
    if _whole_checksum(layer.stored.remove_metadata(), layer.checksums) != layer.info.checksum:
        raise Corrupt(f'layer "{layer.info.path}" does not have checksum {layer.info.checksum}', RECOVER)
    return layer


def verify_block(layer: Layer, number: int) -> None:
    """Compare one block with its checksum, and look at every offset and every text in it: a checksum does not say who has made it, and
    an offset that leads out of the block would take the process with it.
    """
    block = layer.raw[number]
    try:
        block.validate(full=True)
        hashes = layer.raw_hashes(number)
        intact = _checksum(block) == layer.checksums[number] and bool((hashes[1:] >= hashes[:-1]).all())
    except pa.ArrowException:
        intact = False
    if not intact:
        raise Corrupt(f'block {number} of layer "{layer.info.path}" has changed since it was written', RECOVER)


def split_blocks(batch: pa.RecordBatch, rows: int = 262_144, bytes: int = 64 << 20) -> list[pa.RecordBatch]:
    """Even slices of at most `rows` rows and about `bytes` bytes, without a copy; none for an empty batch."""
    if batch.num_rows == 0:
        return []
    pieces = max(-(-batch.num_rows // rows), -(-batch.nbytes // bytes))
    step = max(1, -(-batch.num_rows // pieces))
    return [batch.slice(start, step) for start in range(0, batch.num_rows, step)]


def is_additive(field: pa.Field) -> bool:
    """Whether a row without this column of upserts has 0 there rather than null."""
    return bool(field.type == pa.int64()) and field.name[: len(field.name) - len(field.name.lstrip(ascii_lowercase))] not in CHOSEN


def bits(array: pa.Array) -> npt.NDArray[Any] | None:
    """The values as integers of their width, without a copy; None for nulls, booleans, decimals and whatever has no fixed width."""
    kind = array.type
    if array.null_count or not (pa.types.is_primitive(kind) and kind.bit_width in (8, 16, 32, 64)):
        return None
    data = array.buffers()[1]
    width = kind.bit_width // 8
    dtype = np.dtype(f"u{width}" if pa.types.is_unsigned_integer(kind) else f"i{width}")
    if len(array) == 0:
        return np.empty(0, dtype=dtype)
    view: npt.NDArray[Any] = np.frombuffer(data, dtype=dtype, count=len(array), offset=array.offset * width)
    return view


def take(array: pa.Array, index: Index) -> pa.Array:
    """The rows at `index`, in that order."""
    values = bits(array)
    if values is None:
        return array.take(pa.array(index))
    return pa.Array.from_buffers(array.type, len(index), [None, pa.py_buffer(values[index])], null_count=0)


def take_rows(batch: pa.RecordBatch, index: Index) -> pa.RecordBatch:
    """`take` on every column."""
    return pa.RecordBatch.from_arrays([take(column, index) for column in batch.columns], schema=batch.schema)


def equal_rows_at(left: Sequence[pa.Array], left_index: Index, right: Sequence[pa.Array], right_index: Index) -> npt.NDArray[np.bool_]:
    """Whether row `left_index[i]` of the left columns equals row `right_index[i]` of the right ones; null equals null, NaN equals NaN."""
    same = np.ones(len(left_index), dtype=np.bool_)
    slow: list[tuple[pa.Array, pa.Array]] = []
    for one, other in zip(left, right, strict=True):
        values, others = (None, None) if pa.types.is_floating(one.type) else (bits(one), bits(other))
        if values is None or others is None or one.type != other.type:
            slow.append((one, other))
        else:
            same &= values[left_index] == others[right_index]
    if slow and len(left_index):
        same &= rows_equal([take(one, left_index) for one, _ in slow], [take(other, right_index) for _, other in slow])
    return same


def _sieved(block: pa.RecordBatch) -> pa.RecordBatch:
    hashes: Hashes = block.column(0).to_numpy(zero_copy_only=True)
    return block.append_column(pa.field(BLOOM, pa.uint8()), bloom_of(hashes))


def _write_blocks(
    file: Path, schema: pa.Schema, first: pa.RecordBatch | None, remaining: Iterator[pa.RecordBatch]
) -> tuple[int, list[str]]:
    rows, checksums = 0, []
    os.close(open_private(str(file), os.O_CREAT | os.O_WRONLY))  # Arrow opens what is there, and leaves its permissions
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        block = first
        while block is not None:
            if block.num_rows:
                checksums.append(_checksum(block))
                writer.write_batch(block, custom_metadata={"checksum": checksums[-1], "rows": str(block.num_rows), **_ends(block)})
                rows += block.num_rows
            block = next(remaining, None)
    return rows, checksums


def _ends(block: pa.RecordBatch) -> dict[str, str]:
    hashes = block.column(0)
    return {"first": str(hashes[0]), "last": str(hashes[-1])}


def _map(file: Path, info: LayerInfo) -> Layer:
    reader = pa.ipc.open_file(pa.memory_map(str(file), "r"))
    blocks, checksums = [], []
    for number in range(reader.num_record_batches):
        block, metadata = reader.get_batch_with_custom_metadata(number)
        if block.num_rows == 0 or block.schema.names[0] != HASH or int(metadata[b"rows"]) != block.num_rows:
            raise ValueError(f"block {number} is malformed")
        block.validate()
        if any(metadata[name.encode()] != end.encode() for name, end in _ends(block).items()):
            raise ValueError(f"block {number} does not begin or end with the hash it had")  # searches skip blocks by these two
        blocks.append(block)
        checksums.append(metadata[b"checksum"].decode())
    return Layer(info, reader.schema, blocks, checksums)


def _check_columns(layer: Layer) -> None:
    """The columns that every layer of its kind has, and whether the blocks follow one another."""
    for field in _BARE[layer.info.kind]:
        if layer.schema.field(field.name).type != field.type:
            raise ValueError(f'"{field.name}" is {layer.schema.field(field.name).type}')
        if any(block.column(field.name).null_count for block in layer.blocks):
            raise ValueError(f'"{field.name}" has nulls')
    if bool((layer.firsts > layer.lasts).any()) or bool((layer.lasts[:-1] > layer.firsts[1:]).any()):
        raise ValueError("its blocks are not in order")


def _check_facts(layer: Layer) -> None:
    info, facts = layer.info, layer.schema.metadata or {}
    if facts.get(b"format", b"").decode() != FORMAT:
        raise Corrupt(f'layer "{info.path}" does not have format "{FORMAT}"', RECOVER)
    expected = {name: str(getattr(info, name)) for name in ("trace", "range", "lower", "upper", "kind")}
    for name, value in expected.items():
        if facts.get(name.encode()) != value.encode():
            raise Corrupt(f'layer "{info.path}" does not have {name} "{value}"', RECOVER)
    if layer.rows != info.rows:
        raise Corrupt(f'layer "{info.path}" has {layer.rows} rows instead of {info.rows}', RECOVER)


def _checksum(block: pa.RecordBatch) -> str:
    return xxhash.xxh3_64_hexdigest(block.serialize())


def _whole_checksum(bare: pa.Schema, checksums: list[str]) -> str:
    return xxhash.xxh3_64_hexdigest(bare.serialize().to_pybytes() + "".join(checksums).encode())
