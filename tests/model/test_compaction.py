"""Knobs under the names of Kafka and Samza: what they mean, and what is refused."""

import re

import pytest

from nosync.model.compaction import DEFAULT, Ages, Compaction, Knobs, compaction_of
from nosync.model.errors import Invalid


def test_knobs_are_read_as_people_write_them() -> None:
    assert compaction_of({"segment size": "64 MiB", "segment age": "1 minute", "dirty ratio": 0.33}) == Compaction(64 << 20, 60.0, 0.33)
    assert compaction_of({"segment size": 1_000, "segment age": "100 ms", "dirty ratio": "0.5"}) == Compaction(1_000, 0.1, 0.5)
    assert compaction_of(None) == compaction_of({}) == DEFAULT


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"dirty ration": 0.3}, 'no knob "dirty ration".*Did you mean "dirty ratio"'),
        ({"segment.ms": 100}, 'no knob "segment.ms"'),
        ({"segment size": "much"}, '"much" is not a segment size.*64 MiB'),
        ({"segment size": 0}, "before anything is in them"),
        ({"segment age": "0 seconds"}, "before anything is in them"),
        ({"segment age": 5}, '"5" is not a segment age'),
        ({"dirty ratio": 1}, "1 is not between 0 and 1"),
        ({"dirty ratio": "half"}, "half is not between 0 and 1"),
    ],
)
def test_what_means_nothing_is_refused(knobs: Knobs, words: str) -> None:
    with pytest.raises(Invalid) as refused:
        compaction_of(knobs)
    assert re.search(words, f"{refused.value.message} {refused.value.hint}"), refused.value


def test_a_segment_is_closed_by_its_size_or_its_age() -> None:
    knobs = Compaction(100, 5.0)
    assert not knobs.closes(99, 4.9) and knobs.closes(100, 0.0) and knobs.closes(0, 5.0)
    assert not DEFAULT.closes(1 << 40, 1e9) and not DEFAULT.by_segment


def test_the_age_of_what_has_no_time_any_more_is_great() -> None:
    ages = Ages({3: 1_000.0, 5: 1_002.5}, 5)
    assert (ages.of(5), ages.of(3)) == (0.0, 2.5) and ages.of(1) > 1_000
