"""Versions of static tables: their rows are read once, with the first epoch, and again where something is recomputed.

A version is a digest of the rows, whatever the table is and wherever it lies: a table with other rows makes another operator of whatever
reads it, and one that was copied or written anew with the same rows does not. It costs one look at all rows at each declaration.
"""

import re

from pyspark.sql import functions as F

from nosync.bridge.catalyst import Catalyst, Java, kind
from nosync.bridge.sessions import cloned
from nosync.compile.fingerprint import digest

ADDRESS = re.compile(r"@[0-9a-f]+")  # what Java prints of values that cannot say what they hold


def version_of(catalyst: Catalyst, plan: Java) -> str:
    """What the rows of a leaf of Spark's plan are known by."""
    match kind(plan):
        case "OneRowRelation":
            return "one row"
        case "Range":
            return f"{plan.start()} {plan.end()} {plan.step()}"
        case "LocalRelation":
            return digest(ADDRESS.sub("", str(plan.data().toString())))
    return _digest_of_rows(catalyst, plan)


def _digest_of_rows(catalyst: Catalyst, plan: Java) -> str:
    """Of the multiset of rows, in no order."""
    session = cloned(catalyst.spark)
    session.conf.set("spark.sql.legacy.allowHashOnMapType", "true")
    rows = Catalyst(session).frame(plan)
    hashes = rows.select(F.xxhash64(*[F.col(f"`{name}`") for name in rows.columns]).alias("h") if rows.columns else F.lit(0).alias("h"))
    parts = F.count("*"), F.sum(F.col("h").bitwiseAND((1 << 32) - 1)), F.sum(F.shiftrightunsigned("h", 32))
    return " ".join(str(part) for part in hashes.agg(*parts).collect()[0])
