"""What a host deletes."""

from nosync.peers.tidying import UNNAMED_SECONDS, Lying, to_delete

NOW = 10_000.0


def test_nothing_goes_while_there_is_room() -> None:
    assert to_delete([Lying("a", 50, 0.0, True), Lying("b", 50, 0.0, True)], 100, NOW) == []


def test_what_was_not_used_for_longest_goes_first_and_no_more_than_it_takes() -> None:
    lying = [Lying("new", 40, NOW - 1, True), Lying("old", 40, NOW - 99, True), Lying("older", 40, NOW - 100, True)]
    assert to_delete(lying, 100, NOW) == ["older"]


def test_what_only_this_host_may_have_stays() -> None:
    lying = [Lying("own", 90, NOW - 100, False), Lying("fetched", 90, NOW - 1, True)]
    assert to_delete(lying, 100, NOW) == ["fetched"]
    assert to_delete(lying[:1] * 2, 100, NOW) == []


def test_what_no_record_names_goes_in_the_end() -> None:
    assert to_delete([Lying("own", 200, NOW - UNNAMED_SECONDS - 1, False)], 100, NOW) == ["own"]


def test_what_others_have_too_goes_before_what_only_this_host_may_have() -> None:
    lying = [Lying("own", 90, NOW - UNNAMED_SECONDS - 1, False), Lying("fetched", 90, NOW - 1, True)]
    assert to_delete(lying, 120, NOW) == ["fetched"]
    assert to_delete(lying, 100, NOW) == ["fetched", "own"]
