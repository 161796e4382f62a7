"""What crash tests share: the session that is quick for a few rows, a bucket."""

from tests.spark.conftest import quick
from tests.store.conftest import s3, s3_endpoint

__all__ = ["quick", "s3", "s3_endpoint"]
