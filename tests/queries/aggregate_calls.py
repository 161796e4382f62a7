"""How each of Spark's aggregate functions is called in the tests, over the columns of `SCHEMA`.

A call is written so that SQL leaves one answer: lists are sorted, sketches are asked for an estimate, ties cannot occur. `OPEN` has the
calls where several answers are right, with the query for all of them.
"""

SCHEMA = "k string, i int, l bigint, d double, b boolean, s string, e decimal(10,2), y binary"

FAST = {
    "any": "any(b)",
    "avg": "avg(e)",
    "bit_xor": "bit_xor(i)",
    "bool_and": "bool_and(b)",
    "bool_or": "bool_or(b)",
    "corr": "corr(d, i)",
    "count": "count(i, d)",
    "count_if": "count_if(i > 2)",
    "covar_pop": "covar_pop(d, i)",
    "covar_samp": "covar_samp(d, i)",
    "every": "every(b)",
    "mean": "mean(d)",
    "regr_avgx": "regr_avgx(d, i)",
    "regr_avgy": "regr_avgy(d, i)",
    "regr_count": "regr_count(d, i)",
    "some": "some(b)",
    "std": "std(i)",
    "stddev": "stddev(d)",
    "stddev_pop": "stddev_pop(e)",
    "stddev_samp": "stddev_samp(l)",
    "sum": "sum(e)",
    "try_avg": "try_avg(i)",
    "try_sum": "try_sum(l)",
    "var_pop": "var_pop(d)",
    "var_samp": "var_samp(d)",
    "variance": "variance(i)",
}
ADD_ONLY = {
    "bit_and": "bit_and(i)",
    "bit_or": "bit_or(l)",
    "max": "max(d)",
    "min": "min(s)",
}
REGROUPED = {
    "approx_count_distinct": "approx_count_distinct(l)",
    "approx_percentile": "approx_percentile(l, 0.5)",
    "approx_top_k": "size(approx_top_k(i, 8))",
    "approx_top_k_accumulate": "size(approx_top_k_estimate(approx_top_k_accumulate(i), 8))",
    "array_agg": "sort_array(array_agg(l))",
    "bitmap_construct_agg": "bitmap_construct_agg(bitmap_bit_position(i))",
    "collect_list": "sort_array(collect_list(s))",
    "collect_set": "sort_array(collect_set(i))",
    "collect_union": "sort_array(collect_union(array(i, i + 1)))",
    "count_min_sketch": "count_min_sketch(l, 0.5d, 0.5d, 1)",
    "histogram_numeric": "aggregate(histogram_numeric(i, 50), 0d, (sum, bin) -> sum + bin.y)",
    "hll_sketch_agg": "hll_sketch_estimate(hll_sketch_agg(l))",
    "kll_sketch_agg_bigint": "kll_sketch_get_n_bigint(kll_sketch_agg_bigint(l))",
    "kll_sketch_agg_double": "kll_sketch_get_n_double(kll_sketch_agg_double(d))",
    "kll_sketch_agg_float": "kll_sketch_get_n_float(kll_sketch_agg_float(cast(d as float)))",
    "kurtosis": "kurtosis(i)",
    "listagg": "listagg(s, ',') within group (order by s)",
    "max_by": "max_by(i % 3, i)",
    "median": "median(d)",
    "min_by": "min_by(i % 3, i)",
    "mode": "mode(i, true)",
    "percentile": "percentile(d, array(0.25, 0.75))",
    "percentile_approx": "percentile_approx(d, 0.9)",
    "percentile_cont": "percentile_cont(0.4) within group (order by d)",
    "percentile_disc": "percentile_disc(0.4) within group (order by l desc)",
    "regr_intercept": "regr_intercept(d, i)",
    "regr_r2": "regr_r2(d, i)",
    "regr_slope": "regr_slope(d, i)",
    "regr_sxx": "regr_sxx(d, i)",
    "regr_sxy": "regr_sxy(d, i)",
    "regr_syy": "regr_syy(d, i)",
    "skewness": "skewness(i)",
    "string_agg": "string_agg(distinct s) within group (order by s)",
    "theta_sketch_agg": "theta_sketch_estimate(theta_sketch_agg(l))",
    "tuple_sketch_agg_double": "tuple_sketch_estimate_double(tuple_sketch_agg_double(l, d))",
    "tuple_sketch_agg_integer": "tuple_sketch_estimate_integer(tuple_sketch_agg_integer(l, i))",
}
# Over sketches made by a first aggregate, by k and i: (what makes them, what merges them).
MERGED = {
    "approx_top_k_combine": ("approx_top_k_accumulate(l, 100)", "size(approx_top_k_estimate(approx_top_k_combine(x, 100), 8))"),
    "bitmap_and_agg": ("bitmap_construct_agg(bitmap_bit_position(l))", "bitmap_and_agg(x)"),
    "bitmap_or_agg": ("bitmap_construct_agg(bitmap_bit_position(l))", "bitmap_or_agg(x)"),
    "hll_union_agg": ("hll_sketch_agg(l)", "hll_sketch_estimate(hll_union_agg(x))"),
    "kll_merge_agg_bigint": ("kll_sketch_agg_bigint(l)", "kll_sketch_get_n_bigint(kll_merge_agg_bigint(x))"),
    "kll_merge_agg_double": ("kll_sketch_agg_double(d)", "kll_sketch_get_n_double(kll_merge_agg_double(x))"),
    "kll_merge_agg_float": ("kll_sketch_agg_float(cast(d as float))", "kll_sketch_get_n_float(kll_merge_agg_float(x))"),
    "theta_intersection_agg": ("theta_sketch_agg(l)", "theta_sketch_estimate(theta_intersection_agg(x))"),
    "theta_union_agg": ("theta_sketch_agg(l)", "theta_sketch_estimate(theta_union_agg(x))"),
    "tuple_intersection_agg_double": (
        "tuple_sketch_agg_double(l, d)", "tuple_sketch_estimate_double(tuple_intersection_agg_double(x))"
    ),
    "tuple_intersection_agg_integer": (
        "tuple_sketch_agg_integer(l, i)", "tuple_sketch_estimate_integer(tuple_intersection_agg_integer(x))"
    ),
    "tuple_union_agg_double": ("tuple_sketch_agg_double(l, d)", "tuple_sketch_estimate_double(tuple_union_agg_double(x))"),
    "tuple_union_agg_integer": ("tuple_sketch_agg_integer(l, i)", "tuple_sketch_estimate_integer(tuple_union_agg_integer(x))"),
}
# Any row of the group may answer: the query beside gives all of them.
OPEN = {
    "any_value": ("any_value(s)", "collect_list(struct(s))"),
    "first": ("first(i)", "collect_list(struct(i))"),
    "first_value": ("first_value(l, true)", "collect_list(struct(l)) filter (where l is not null)"),
    "last": ("last(s)", "collect_list(struct(s))"),
    "last_value": ("last_value(d)", "collect_list(struct(d))"),
}
GROUPING = {"grouping": "grouping(k)", "grouping_id": "grouping_id(k, i)"}
NOT_CALLABLE = {"measure": "measure(i)"}  # only within metric views

ALL = FAST | ADD_ONLY | REGROUPED | MERGED | OPEN | GROUPING | NOT_CALLABLE
