"""How far a recovery is follows from its plan."""

from nosync.journal.entries import Computed
from nosync.journal.image import Image
from nosync.model.hash_range import HashRange
from nosync.model.layers import LayerInfo
from nosync.recovery.plan import Plan
from nosync.recovery.progress import RecoveryProgress
from nosync.recovery.recompute import Recompute

ONE, OTHER = HashRange(0, 10), HashRange(10, 20)


def layer(epoch: int, held: HashRange, size: int) -> LayerInfo:
    return LayerInfo("v", held, epoch, epoch + 1, "diffs", f"{epoch}-{held.lower}", 1, size, "")


def test_a_shard_is_whole_when_nothing_of_it_is_left_to_do() -> None:
    layers = (layer(1, ONE, 10), layer(1, OTHER, 20))
    image = Image()
    image.apply(1, Computed(1, layers, {}, {}))
    job = Recompute(2, 2, {"v": frozenset([OTHER])})
    plan = Plan(2, 2, fetch=("1-0", "1-10", "input"), jobs=(job,), missing=(layer(2, OTHER, 70),))
    steps = RecoveryProgress(image, plan)
    found = [*(steps.before_file(number) for number in range(3)), steps.before_job(job)]
    assert [(one.shards_done, one.shards, one.bytes_done, one.bytes) for one in found] == [
        (0, 2, 0, 100), (1, 2, 10, 100), (1, 2, 30, 100), (1, 2, 30, 100),
    ]  # fmt: skip
    assert str(found[1]) == "1 of 2 shards, 10 of 100 B (fetching file 2 of 3 from the remote)"


def test_of_what_is_missing_a_job_brings_back_its_own_part_and_epochs() -> None:
    job = Recompute(2, 3, {"v": frozenset([ONE])})
    missing = (layer(1, ONE, 1), layer(2, ONE, 10), layer(3, ONE, 20), layer(4, ONE, 100), layer(2, OTHER, 1000))
    assert RecoveryProgress(Image(), Plan(4, 4, jobs=(job,), missing=missing)).bytes[-1] == 30
