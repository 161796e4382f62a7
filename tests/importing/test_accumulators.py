"""Aggregation buffers as Spark has them become accumulators that give the same results, and go on."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from nosync.importing.accumulators import Buffers, groups_of, remark
from nosync.kernels.accumulate import Accumulation, grouped, merged
from nosync.kernels.functions import Result
from nosync.kernels.groups import Groups
from nosync.model.errors import Invalid

DOUBLE, LONG, BOOL, MONEY = pa.float64(), pa.int64(), pa.bool_(), pa.decimal128(9, 2)


def imported(spec, *columns):
    """One group of a checkpoint, whose state has these columns."""
    sizes = {"sum": 2 if len(columns) == 2 else 1, "avg": 2, "var_pop": 3, "stddev_samp": 3, "covar_pop": 4, "corr": 6}
    buffers, first = [], 0
    for result in spec.results:
        buffers.append(Buffers(result, first, sizes.get(result.function, 1)))
        first += buffers[-1].count
    return groups_of(spec, buffers, np.zeros(1, np.uint64), [], [pa.array([value], type) for value, type in columns])


def rows(spec, values) -> Groups:
    hashes, diffs = np.zeros(len(values), np.uint64), np.ones(len(values), np.int64)
    columns = [pa.array([value[i] for value in values], type) for i, type in enumerate(spec.inputs)]
    return grouped(spec, hashes, [], columns, diffs)


def answers(spec, *groups):
    return [array[0].as_py() for array in spec.finish(merged(spec, list(groups)))]


def spec_of(inputs, *results):
    return Accumulation((), tuple(inputs), tuple(Result(function, of, type) for function, of, type in results))


def test_counts_and_sums_of_integers_go_on_exactly():
    spec = spec_of([LONG], ("count", (), LONG), ("count", (0,), LONG), ("sum", (0,), LONG))
    before = imported(spec, (5, LONG), (3, LONG), (2**62, LONG))
    assert answers(spec, before) == [5, 3, 2**62]
    assert answers(spec, before, rows(spec, [(1,), (None,)])) == [7, 4, 2**62 + 1]


def test_a_group_without_values_has_no_sum():
    spec = spec_of([LONG], ("count", (), LONG), ("sum", (0,), LONG))
    assert answers(spec, imported(spec, (2, LONG), (None, LONG))) == [2, None]


def test_an_empty_sum_of_decimals_is_null_and_goes_on():
    spec = spec_of([MONEY], ("sum", (0,), pa.decimal128(19, 2)))
    before = imported(spec, (Decimal("0.00"), pa.decimal128(19, 2)), (True, BOOL))
    assert answers(spec, before) == [None]
    assert answers(spec, before, rows(spec, [(Decimal("1.25"),)])) == [Decimal("1.25")]


def test_a_sum_that_has_overflowed_is_refused():
    spec = spec_of([MONEY], ("sum", (0,), pa.decimal128(19, 2)))
    with pytest.raises(Invalid, match="has overflowed"):
        imported(spec, (None, pa.decimal128(19, 2)), (False, BOOL))


def test_a_sum_of_doubles_goes_on_from_sparks_value():
    spec = spec_of([DOUBLE], ("sum", (0,), DOUBLE))
    assert answers(spec, imported(spec, (0.1 + 0.2, DOUBLE)), rows(spec, [(1e300,), (-1e300,)])) == [0.1 + 0.2]


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_what_is_not_finite_stays_so(value):
    spec = spec_of([DOUBLE], ("sum", (0,), DOUBLE), ("avg", (0,), DOUBLE))
    found = imported(spec, (value, DOUBLE), (value, DOUBLE), (2, LONG))
    assert answers(spec, found, rows(spec, [(1.0,)])) == [value, value]


def test_an_average_of_integers_goes_on():
    spec = spec_of([LONG], ("avg", (0,), DOUBLE))
    assert answers(spec, imported(spec, (12.0, DOUBLE), (4, LONG)), rows(spec, [(3,)])) == [3.0]


def test_an_exact_sum_is_not_spoilt_by_the_average_of_the_same_column():
    spec = spec_of([LONG], ("avg", (0,), DOUBLE), ("sum", (0,), LONG))
    assert answers(spec, imported(spec, (float(2**60), DOUBLE), (2, LONG), (2**60 + 1, LONG)))[1] == 2**60 + 1


@pytest.mark.parametrize(
    ("least", "greatest", "added", "wanted"),
    [(False, True, True, [False, True]), (True, True, False, [False, True]), (False, False, True, [False, True]),
     (True, True, True, [True, True]), (None, None, False, [False, False])],
)  # fmt: skip
def test_booleans_go_on(least, greatest, added, wanted):
    spec = spec_of([BOOL], ("min", (0,), BOOL), ("max", (0,), BOOL))
    before = imported(spec, (least, BOOL), (greatest, BOOL))
    assert answers(spec, before) == [least, greatest]
    assert answers(spec, before, rows(spec, [(added,)])) == wanted


@pytest.mark.parametrize("shift", [0.0, 1e9, -1e-7])
def test_a_variance_goes_on_however_far_the_values_are_from_zero(shift):
    rng = np.random.default_rng(5)
    x = rng.normal(size=40) + shift
    spec = spec_of([DOUBLE], ("var_pop", (0,), DOUBLE), ("stddev_samp", (0,), DOUBLE))
    m2 = float(((x[:25] - x[:25].mean()) ** 2).sum())
    state = [(25.0, DOUBLE), (float(x[:25].mean()), DOUBLE), (m2, DOUBLE)] * 2
    assert answers(spec, imported(spec, *state)) == pytest.approx([m2 / 25, (m2 / 24) ** 0.5], rel=1e-15)
    found = answers(spec, imported(spec, *state), rows(spec, [(value,) for value in x[25:].tolist()]))
    assert found == pytest.approx([np.var(x), np.std(x, ddof=1)], rel=1e-6)


def test_a_variance_beside_a_sum_of_the_same_column_is_that_of_the_state():
    spec = spec_of([DOUBLE], ("sum", (0,), DOUBLE), ("var_pop", (0,), DOUBLE))
    assert answers(spec, imported(spec, (3e9, DOUBLE), (3.0, DOUBLE), (1e9, DOUBLE), (2e-9, DOUBLE)))[1] == pytest.approx(2e-9 / 3)


def test_a_correlation_goes_on():
    rng = np.random.default_rng(6)
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    a, b = x[:20], y[:20]
    spec = spec_of([DOUBLE, DOUBLE], ("corr", (0, 1), DOUBLE), ("covar_pop", (0, 1), DOUBLE))
    together = float(((a - a.mean()) * (b - b.mean())).sum())
    spreads = [float(((v - v.mean()) ** 2).sum()) for v in (a, b)]
    shared = [20.0, float(a.mean()), float(b.mean()), together]
    state = [(value, DOUBLE) for value in [*shared, *spreads, *shared]]
    found = answers(spec, imported(spec, *state), rows(spec, list(zip(x[20:].tolist(), y[20:].tolist(), strict=True))))
    assert found == pytest.approx([np.corrcoef(x, y)[0, 1], np.cov(x, y, ddof=0)[0, 1]])


def test_what_does_not_come_over_to_the_last_bit_is_said():
    assert "double that Spark had" in remark(Result("sum", (0,), DOUBLE), [DOUBLE])
    assert "2^53" in remark(Result("avg", (0,), DOUBLE), [LONG])
    assert "double that Spark had" in remark(Result("var_pop", (0,), DOUBLE), [LONG])
    assert [remark(Result(function, (0,), LONG), [LONG]) for function in ("sum", "count", "max")] == ["", "", ""]
