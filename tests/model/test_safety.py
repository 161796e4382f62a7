"""Which epochs survive what, and what a sink may have."""

import pytest

from nosync.model.safety import Problem, Release, Standing, releasable, safe_points


def standing(survives: str, number: int, epoch: int, problem: Problem | None = None) -> Standing:
    return Standing(survives, number, epoch, 0, 0, 0, problem)  # type: ignore[arg-type]


def test_a_worse_failure_never_has_a_newer_safe_point() -> None:
    assert safe_points(9, []) == {"process": 9}
    assert safe_points(9, [standing("host", 0, 7), standing("site", 0, 5)]) == {"process": 9, "host": 7, "site": 5}
    assert safe_points(9, [standing("host", 0, 5), standing("site", 0, 7)]) == {"process": 9, "host": 5, "site": 5}
    assert safe_points(4, [standing("host", 0, 7)]) == {"process": 4, "host": 4}


@pytest.mark.parametrize(
    ("release", "numbers", "epochs", "due"),
    [
        ("safe", (9, 9), (7, 5), 5), ("safe", (9, 9), (20, 30), 8), ("safe", (), (), 8),
        ("computed", (9, 6), (1, 1), 6), ("computed", (30, 20), (1, 1), 8), ("computed", (), (), 0),
    ],
)  # fmt: skip
def test_a_sink_may_have_what_is_safe_or_what_would_come_out_the_same(
    release: Release, numbers: tuple[int, ...], epochs: tuple[int, ...], due: int
) -> None:
    """An epoch was opened in the record of its number."""
    tiers = [standing("host", number, epoch) for number, epoch in zip(numbers, epochs, strict=True)]
    assert releasable(release, 8, lambda number: number, tiers) == due


def test_a_standing_comes_back_from_its_facts() -> None:
    facts = {"survives": "site", "number": 3, "epoch": 2, "behind": 1, "objects": 4, "bytes": 5}
    assert Standing.from_json(facts | {"problem": None}) == Standing("site", 3, 2, 1, 4, 5)
    problem = {"message": "the link is cut", "since": 7.0}
    assert Standing.from_json(facts | {"problem": problem}).problem == Problem("the link is cut", 7.0)
