"""What is asked of the recent records in every epoch is answered as by looking at all of them, without looking at all of them."""

import random

import pytest

from nosync.journal.entries import Computed, Entry, Merged, Opened, Restored, RolledBack, TakenOver
from nosync.journal.image import Image
from nosync.journal.recent import Recent, layers_of
from nosync.journal.record import FIRST, Record, encode
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.tiers.progress import epoch_before


def layer(lower: int, upper: int, size: int) -> LayerInfo:
    return LayerInfo("v", ALL_HASHES, lower, upper, "diffs", f"layers/v/0-f/{lower}-{upper}-{size}.arrow", 1, size, "")


def some_entries(chance: random.Random, image: Image) -> list[Entry]:
    """What may come next in a history."""
    choices: list[list[Entry]] = [[Merged(layer(1, 2, 7))], []]
    choices.append([Opened(image.last_opened + 1, 0.0, {})])
    if image.epoch + 1 in image.opened:
        choices += [[Computed(image.epoch + 1, (layer(image.epoch + 1, image.epoch + 2, chance.randrange(99)),), {}, {})]] * 3
    if image.epoch > 2 and chance.random() < 0.2:
        first = chance.randrange(1, image.epoch)
        made = (layer(first, image.epoch + 1, 5),)
        choices += [[RolledBack(chance.randrange(1, image.epoch + 1))], [Restored((), made)], [TakenOver(image.epoch, made, {}, False, {})]]
    return chance.choice(choices)


def history(chance: random.Random, length: int) -> tuple[list[Record], Image]:
    image, records, digest = Image(), list[Record](), FIRST
    for number in range(1, length + 1):
        records.append(encode(number, "1.a", digest, some_entries(chance, image)))
        digest = records[-1].digest
        for entry in records[-1].entries:
            image.apply(number, entry)
    return records, image


def opened_before(image: Image, number: int) -> int:
    return min([image.epoch, *(epoch - 1 for epoch, record in image.opened_in.items() if record > number)])


@pytest.mark.parametrize("seed", range(60))
def test_the_answers_are_those_of_looking_at_everything(seed: int) -> None:
    chance = random.Random(seed)
    records, image = history(chance, chance.randrange(1, 60))
    recent = Recent(Image(), records)
    forgotten = chance.randrange(len(records) + 1)
    recent.forget(forgotten)
    for number in range(forgotten, len(records) + 1):
        behind = records[number:]
        assert recent.after(number) == behind and recent.after(number, 3) == behind[:3]
        assert recent.computed_by(number, image.epoch) == epoch_before(image, behind, number)
        assert recent.opened_by(number, image.epoch) == opened_before(image, number)
        assert recent.record_bytes_after(number) == sum(len(record.content) for record in behind)
        layers = sum(one.bytes for record in behind for one in layers_of(record))
        assert recent.bytes_after(number) == recent.record_bytes_after(number) + layers


def test_what_a_rollup_still_knows_counts_too() -> None:
    """Epoch 3 was computed in a record that some tier lacks, and is in the image before the records."""
    image = Image()
    for number, entry in enumerate([Opened(3, 0.0, {}), Computed(3, (), {}, {})], start=7):
        image.apply(number, entry)
    recent = Recent(image, [encode(9, "1.a", FIRST, [Opened(4, 0.0, {})])])
    assert [recent.computed_by(number, 3) for number in (7, 8, 9)] == [2, 3, 3]
    assert [recent.opened_by(number, 3) for number in (6, 7, 8)] == [2, 3, 3]
