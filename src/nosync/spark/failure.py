"""What went wrong in a job, in the user's own terms: their function, their expression, their file. No Java stack trace on top."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyspark

from nosync.bridge.errors import CODES, all_messages, root_message
from nosync.model.errors import Corrupt, Failed, NosyncError, Unavailable, Unreadable
from nosync.model.identifiers import Epoch, TraceName
from nosync.recovery.suspicion import START_AGAIN

TRACEBACK = re.compile(r"Traceback \(most recent call last\):.*", re.DOTALL)
ERROR_CLASS = re.compile(r"\[[A-Z][A-Z0-9_.]+\](?:[^\n]*:\n)?[^\n]*")  # a line that ends with a colon goes on
DISK = re.compile(r"\[?Errno (28|13|30|122|27|5)\b[^\n]*|No space left on device[^\n]*")
SPARK_FILE = re.compile(r"\[FAILED_READ_FILE[^\]]*\] [^\n]*? (file:/[^\n]*?)\.(?: |$|\n)")
OUR_FILE = re.compile(r'Unreadable: file "([^"\n]*)" cannot be read: ([^\n]*)')
FOLDED = re.compile(r'^in fold "[^"]*" of view "([^"]*)"', re.MULTILINE)
STOPPED = re.compile(
    r"'NoneType' object has no attribute 'setLocalProperty'|stopped SparkContext|SparkContext (was|has been) (stopped|shut ?down)"
)
OURS = re.compile(r"nosync\.model\.errors\.(\w+): (.*)", re.DOTALL)


def _frames_below(folders: Iterable[str]) -> re.Pattern[str]:
    """Frames of a traceback whose files lie in these folders, or where packages are installed on another machine. A user's own folder may
    be called "nosync" or "pyspark" too: their frames are not among them.
    """
    here = "|".join(re.escape(folder.rstrip("/")) for folder in folders)
    installed = r'[^"\n]*(?:site-packages|dist-packages|\.zip)/(?:nosync|pyspark)'
    return re.compile(rf'^  File "(?:{here}|{installed})/.*?(?=^  File |^\S)', re.DOTALL | re.MULTILINE)


PACKAGES = (Path(__file__).parents[1], Path(pyspark.__file__).parent)
INSIDE = _frames_below({str(named) for folder in PACKAGES for named in (folder, folder.resolve())})


@dataclass(frozen=True, slots=True)
class Job:
    """What was computed: the next epoch, of which nothing is recorded then; or, of some `traces`, recorded epochs once more."""

    first: Epoch
    last: Epoch
    traces: tuple[TraceName, ...] = ()

    def __str__(self) -> str:
        epochs = f"epoch {self.last}" if self.first == self.last else f"epochs {self.first} to {self.last}"
        return f"recomputing {epochs} of {', '.join(self.traces)}" if self.traces else epochs

    @property
    def left(self) -> str:
        """What the failure does not touch."""
        return "what is recorded stays as it is" if self.traces else f"the state is whole up to epoch {self.first - 1}"


class InTask(Exception):
    """An error of a task that ran in this process."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def explain(error: Exception, views_by_function: Mapping[str, str], views: list[str], job: Job) -> NosyncError:
    """The error of a failed job. The state stays as it was before."""
    if isinstance(error, InTask):
        return _task_failed(error.error, views, job)
    if isinstance(error, NosyncError):
        return error
    text = str(error) if isinstance(error, OSError) else root_message(error)
    if isinstance(error, OSError) or DISK.search(text):
        return disk_failed(text, job)
    if (unreadable := _unreadable_input(error, text)) is not None:
        return unreadable
    found = TRACEBACK.search(text)
    hint = f"{job.left[0].upper()}{job.left[1:]}: correct the program and start it again on the same home."
    if found:
        return _function_failed(found.group(0), views_by_function, views, job, hint)
    if STOPPED.search(text):
        hint = f"Nothing is lost, {job.left}: start the flow again on the same home. End a run with run.stop() before spark.stop()."
        return Failed(f"the SparkSession was stopped under the run, in {job}", hint=hint)
    classes = ERROR_CLASS.findall(text)
    words = CODES.sub("", " ".join(classes[0].split())) if classes else text.strip().splitlines()[0]
    return Failed(f"{job} failed in {_some(views)}: {words}", hint=hint)


def _task_failed(error: Exception, views: list[str], job: Job) -> NosyncError:
    """As what a worker's task raises."""
    if isinstance(error, OSError):
        return disk_failed(str(error), job)
    words = error.message if isinstance(error, NosyncError) else f"{type(error).__name__}: {error}"
    if isinstance(error, Corrupt):
        return Corrupt(f"{job} met damage: {words}", hint=START_AGAIN)
    if isinstance(error, Unreadable):
        return _unreadable_input(Exception(f"Unreadable: {words}"), words) or error
    hint = f"{job.left[0].upper()}{job.left[1:]}: correct the program and start it again on the same home."
    return Failed(f"{job} failed in {_some(views)}: {words}", hint=hint)


def _unreadable_input(error: Exception, text: str) -> Unreadable | None:
    """A file of the input that Spark, or a task of ours, could not read."""
    for message in all_messages(error):
        if found := SPARK_FILE.search(message):
            path, reason = unquote(urlsplit(found[1]).path), text.strip().splitlines()[0]
        elif found := OUR_FILE.search(message):
            path, reason = found[1], found[2]
        else:
            continue
        hint = f'Put it back as it was, and start again. Or set it aside for good: nosync skip HOME SOURCE "{path}"'
        return Unreadable(f'file "{path}" cannot be read: {reason}', hint=hint, files={path: f"cannot be read: {reason}"})
    return None


def disk_failed(text: str, job: Job) -> Unavailable:
    """The file system refused; what was whole before stays whole."""
    found = DISK.search(text)
    words = found.group(0) if found else text.strip().splitlines()[-1]
    return Unavailable(
        f"{'the result of ' if job.traces else ''}{job} could not be written: {words}",
        hint=f"Make room or restore access, and start again: {job.left}.",
    )


def _function_failed(trace: str, views_by_function: Mapping[str, str], views: list[str], job: Job, hint: str) -> NosyncError:
    trace = trace.split("\n\n\tat ")[0].rstrip()
    ours = OURS.search(trace)
    if ours and ours.group(1) == "Corrupt":
        return Corrupt(f"{job} met damage: {ours.group(2).splitlines()[0]}", hint=START_AGAIN)
    if ours and ours.group(1) == "Unavailable":
        return Unavailable(f"{job}: {ours.group(2).splitlines()[0]}", hint=f"It is tried again: {job.left}.")
    if ours and ours.group(1) == "Unreadable":
        words = ours.group(2).splitlines()[0]
        return Unreadable(f"{job}: {words}", hint=hint, files={words: "gone"})
    if ours:
        return Failed(f"{job} failed in {_some(views)}: {ours.group(2).splitlines()[0]}", hint=hint)
    own = INSIDE.sub("", trace)
    folds = FOLDED.findall(trace)
    if 'File "' not in own and not folds:
        return Failed(f"{job} failed in {_some(views)}: {trace.splitlines()[-1]}", hint=hint)
    named = [view for function, view in views_by_function.items() if re.search(rf"in {re.escape(function)}\b", trace)]
    return Failed(f"a function in {_some(folds or named or views)} raised an error in {job}:\n{own}", hint=hint)


def _some(views: list[str]) -> str:
    """Where it was. What a source rejects is nobody's expression."""
    written = [view for view in dict.fromkeys(views) if not view.endswith(".rejected")] or views
    names = ", ".join(f'"{view}"' for view in written)
    return f"view {names}" if len(written) == 1 else f"one of the views {names}"
