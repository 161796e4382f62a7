"""Columns of a DataFrame by the names that the user chose."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from nosync.model.quoting import quoted


def column_named(name: str) -> Column:
    """The column that is called so: a dot in the name leads to no field within."""
    return F.col(quoted(name))
