"""What a failed call on a store means for its caller, and what a person should look at.

Promise: `Unavailable` only where nothing can have been written; a write of which that is not certain is `OutcomeUnknown`. Pure. Called by
the disk and by the remote for everything that the system or `obstore` raises.
"""

import errno
import re

from obstore.exceptions import AlreadyExistsError, PermissionDeniedError, UnauthenticatedError

from nosync.model.errors import Conflict, NosyncError, OutcomeUnknown, Unavailable

FULL = {errno.ENOSPC, errno.EDQUOT}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
# Refused, or without credentials: clients then ask for them at these addresses.
NOT_ALLOWED = re.compile(r"status code: 40[13]|169\.254\.(169\.254|170\.2)|metadata\.google\.internal")
# The last attempt was refused; an earlier one may have written.
RETRIED = re.compile(r"after [1-9]\d* retries")
# What stands behind the question mark of an address may be a signature.
SECRETS = re.compile(r"(https?://[^\s?]+)\?[^\s)]*")

CREDENTIALS = "Check the credentials in the environment (such as AWS_ACCESS_KEY_ID), and that they may read, write, list and delete there."
BUCKET = "Create the bucket, or correct its name in the address."
REACHABLE = "Check the address, the endpoint (such as AWS_ENDPOINT_URL) and the network; it goes on by itself when the remote answers."


def from_disk(error: OSError, action: str) -> Unavailable:
    """The error for a call on files that failed: what is visible under the name is as before."""
    return Unavailable(f"{action}: {error.strerror or error}", hint=_disk_hint(error.errno))


def from_remote(error: Exception, action: str, *, write: bool) -> NosyncError:
    """The error for a call on objects that failed. When in doubt whether a write has happened, it is `OutcomeUnknown`."""
    text = SECRETS.sub(r"\1", str(error))
    message = f"{action}: {text.partition(chr(10))[0].strip()}"
    if isinstance(error, AlreadyExistsError):
        return Conflict(message, hint="Read it back to see who wrote it.")
    hint = _remote_hint(error, text)
    refused = hint != REACHABLE and not RETRIED.search(text)
    return Unavailable(message, hint) if refused or not write else OutcomeUnknown(message, hint)


def is_bucket_missing(error: Exception) -> bool:
    """A bucket that is missing is not the same as a name that is: it says nothing about what was written."""
    return bool(NO_BUCKET.search(str(error)))


def _remote_hint(error: Exception, text: str) -> str:
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or NOT_ALLOWED.search(text):
        return CREDENTIALS
    if is_bucket_missing(error):
        return BUCKET
    return REACHABLE


def _disk_hint(code: int | None) -> str:
    if code in FULL:
        return "The disk is full: make room, or give the home a larger disk; nothing half-written is visible."
    if code in FORBIDDEN:
        return "Check that this user may read and write there, and that the file system is not read-only and knows hard links."
    return "Check the disk and the system's log; nothing half-written is visible."
