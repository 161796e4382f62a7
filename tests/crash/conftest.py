"""What crash tests share: a bucket."""

from tests.store.conftest import s3, s3_endpoint

__all__ = ["s3", "s3_endpoint"]
