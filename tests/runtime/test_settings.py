"""What answers depend on besides the input: a home is not gone on with under other settings unknowingly."""

import pytest

from nosync.journal.entries import Declared
from nosync.model.errors import Invalid
from nosync.runtime.change import check_settings, difference

BEFORE = {"spark.sql.ansi.enabled": "true", "version of Java": "17", "spark.sql.legacy.timeParserPolicy": "EXCEPTION"}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({**BEFORE, "spark.sql.ansi.enabled": "false"}, "spark.sql.ansi.enabled is false, it was true"),
        ({**BEFORE, "version of Java": "21"}, "version of Java is 21, it was 17"),
        ({**BEFORE, "spark.sql.legacy.bucketedTableScan": "1"}, "spark.sql.legacy.bucketedTableScan is 1, it was not set"),
        ({name: BEFORE[name] for name in list(BEFORE)[:2]}, "spark.sql.legacy.timeParserPolicy is not set, it was EXCEPTION"),
    ],
)
def test_other_settings_are_refused_by_name_unless_they_are_accepted(now: dict[str, str], words: str) -> None:
    with pytest.raises(Invalid, match=words) as error:
        check_settings(BEFORE, now, "refuse")
    assert 'on_other_settings="accept"' in error.value.hint
    check_settings(BEFORE, now, "accept")


def test_the_same_settings_go_on() -> None:
    check_settings(BEFORE, dict(BEFORE), "refuse")


def test_a_static_table_with_other_rows_is_named() -> None:
    old, new = (Declared("f", 1, {}, {"v/join": mark}, {}, tables={"v/static-1": mark, "w/static-1": "same"}) for mark in ("a", "b"))
    assert str(difference(old, new)).endswith('static table "v/static-1" has other rows')
