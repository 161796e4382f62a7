"""Names of files in a home, the same on every tier. Layers carry the run that made them, so that no two ever meet.

    runs/<generation>               who took over; created put-if-absent, never deleted
    journal/records/<number>        records from that number on (one in a home, several on a remote)
    journal/segments/<first>-<last> the records that were rolled up, compressed
    journal/openings/<first>-<last> what is left of them once no epoch among them is kept: what was opened, and what came of it, without
                                    layers; of several segments where those were given up (see `forgetting`)
    journal/taken/<first>-<last>    a summary of what those openings took (see `taken`)
    journal/rollups/<number>-<epoch> the flow as of that record
    layers/<trace>/<hashes>/<first epoch>-<behind the last>-<run>-<random>.arrow
                                    layers, by the range of hashes that they hold (see `model.hash_range`)
    input/<source>/                 rows that cannot be had again
    input/~imported/                state that came from elsewhere (see `spark.imports`)
    leases/<generation>             on the tier where runs meet: which run leads, renewed while somebody stands by (see `model.lease`)
    standbys/<random>               there too: who stands by
    receipts/<run>-<random>/        in a home, for the length of a job: what its kernels have done (see `spark.receipts`)
    readers/<random>                in a home: what is being read (see `tiers.reader_leases`)

Names of traces and sources are percent-encoded; those with capitals, dots in front or more than 100 characters also end in "~" and a hash.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable
from urllib.parse import quote

from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, RecordNumber, TraceName

RUNS, RECORDS, SEGMENTS, OPENINGS, ROLLUPS = "runs", "journal/records", "journal/segments", "journal/openings", "journal/rollups"
TAKEN = "journal/taken"
LAYERS, INPUT, RECEIPTS, READERS = "layers", "input", "receipts", "readers"
IMPORTED = f"{INPUT}/~imported"  # no source has this name
LEASES, STANDBYS = "leases", "standbys"
OWN = re.compile(
    r"runs/[0-9]{8,12}|journal/records/[0-9]{16}|journal/(segments|openings|taken|rollups)/[0-9]{16}-[0-9]{16}"
    r"|leases/[0-9]{8,12}|standbys/[0-9a-z]{8,32}|readers/[0-9a-f]{32}"
)
LAYER = re.compile(
    r"layers/[^/]+/(?P<range>[0-9a-f]+-[0-9a-f]+)/(?P<lower>\d+)-(?P<upper>\d+)-(?P<generation>\d+)\.[0-9a-f]+-[0-9a-f]+\.arrow"
)
LEFT_RECEIPTS = re.compile(r"[0-9]+\.[0-9a-f]+-[0-9a-f]{8}")
LONGEST = 100
ESCAPE = re.compile(r"%[0-9A-F]{2}")
PLAIN = re.compile(r"[a-z0-9_%-]([a-z0-9_.%-]*[a-z0-9_%-])?")
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")  # by Windows


def layer_path(trace: TraceName, range: HashRange, lower: Epoch, upper: Epoch, run: str) -> str:
    """A name that no other attempt will ever use."""
    return f"{layer_folder(trace, range)}/{epoch_prefix(lower)}-{upper}-{run}-{uuid.uuid4().hex[:8]}.arrow"


def layer_folder(trace: TraceName, range: HashRange) -> str:
    return f"{LAYERS}/{folder_name(trace)}/{range}"


def epoch_prefix(lower: Epoch) -> str:
    """What names of layers begin with: in order, those of later epochs come later."""
    return f"{lower:012d}"


def run_name(generation: int) -> str:
    return f"{RUNS}/{generation:08d}"


def lease_name(generation: int) -> str:
    return f"{LEASES}/{generation:08d}"


def standby_name(nonce: str) -> str:
    return f"{STANDBYS}/{nonce}"


def newest_generation(names: Iterable[str]) -> int:
    """Among names of `RUNS`; 0 where nobody has run the flow yet."""
    return max((numbers_in(name)[0] for name in own(names)), default=0)


def record_name(number: RecordNumber) -> str:
    return f"{RECORDS}/{number:016d}"


def segment_name(first: RecordNumber, last: RecordNumber) -> str:
    return f"{SEGMENTS}/{first:016d}-{last:016d}"


def openings_name(segment: str) -> str:
    return f"{OPENINGS}/{segment.rpartition('/')[2]}"


def taken_summary_name(first: RecordNumber, last: RecordNumber) -> str:
    return f"{TAKEN}/{first:016d}-{last:016d}"


def rollup_name(number: RecordNumber, epoch: Epoch) -> str:
    return f"{ROLLUPS}/{number:016d}-{epoch:016d}"


def own(names: Iterable[str]) -> list[str]:
    """Those that a journal, runs and readers give. Whatever else lies in their folders is somebody else's, and is left alone."""
    return [name for name in names if OWN.fullmatch(name)]


Span = tuple[RecordNumber, RecordNumber]


def numbers_in(name: str) -> tuple[RecordNumber, ...]:
    """The numbers that a name of the journal ends in."""
    return tuple(RecordNumber(part) for part in name.rpartition("/")[2].split("-"))


def source_folder(source: str) -> str:
    """Where a source keeps what it cannot read again."""
    return f"{INPUT}/{folder_name(source)}"


def folder_name(name: str) -> str:
    """A name that the user chose, as one part of a path. No two names share one, also where case is ignored; and none leads
    out of its folder, is hidden, reserved or too long for a file system.
    """
    content = name.encode(errors="surrogatepass")
    found = ESCAPE.sub(lambda escape: escape[0].lower(), quote(content, safe=""))
    if PLAIN.fullmatch(found) and len(found) <= LONGEST and not RESERVED.fullmatch(found):
        return found
    return f"{found[:LONGEST].lstrip('.')}~{hashlib.blake2b(content, digest_size=16).hexdigest()}"
