"""What `at=` may say."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from nosync.model.errors import Invalid
from nosync.model.moment import Moment, moment_of

NOW = 1_000_000.0


@pytest.mark.parametrize(("at", "meant"), [(None, None), ("safe", "safe"), (41, 41), ("41", 41), (np.int64(41), 41)])
def test_epochs_and_words(at: object, meant: object) -> None:
    assert moment_of(at, NOW) == meant  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "time"),
    [
        ("1 hour ago", NOW - 3600),
        ("an hour ago", NOW - 3600),
        ("2.5 minutes ago", NOW - 150),
        ("1 hour 30 minutes ago", NOW - 5400),
        ("3 Days ago", NOW - 3 * 86400),
        ("1970-01-02T00:00:00Z", 86400.0),
        ("1970-01-02 00:00:00+01:00", 82800.0),
        (datetime(1970, 1, 2, tzinfo=UTC), 86400.0),
        ("1970-01-02", datetime(1970, 1, 2).timestamp()),
    ],
)
def test_times(at: str | datetime, time: float) -> None:
    found = moment_of(at, NOW)
    assert isinstance(found, Moment) and found.time == time


@pytest.mark.parametrize("at", ["yesterday", "", "1 hour", "²", datetime.min, pd.NaT, True, 1.5, object()])
def test_anything_else_is_refused_with_what_may_be_said(at: object) -> None:
    with pytest.raises(Invalid, match=r"is no epoch and no time\nPass the number of an epoch"):
        moment_of(at, NOW)  # type: ignore[arg-type]
