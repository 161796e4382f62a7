"""What a failed job is called."""

from pathlib import Path

import pytest

import nosync
from nosync.model.errors import Failed, Unavailable
from nosync.spark.failure import Job, explain

NEXT = Job(7, 7)

TASK = """Traceback (most recent call last):
  File "/venv/site-packages/nosync/spark/retain.py", line 10, in __call__
    self.work.hand_in(1)
  File "/venv/site-packages/nosync/state/layer.py", line 20, in write_layer
    writer.write(block)
{error}
"""

USERS = """Traceback (most recent call last):
  File "/venv/site-packages/pyspark/worker.py", line 10, in main
    process()
  File "/home/ann/shop.py", line 3, in price_of
    return 1 / 0
ZeroDivisionError: division by zero
"""


def test_a_full_disk_says_so_and_what_is_safe():
    error = explain(Exception(TASK.format(error="OSError: [Errno 28] No space left on device")), {}, ["v"], NEXT)
    assert isinstance(error, Unavailable)
    assert str(error).splitlines()[0].startswith("epoch 7 could not be written: [Errno 28] No space left on device")
    assert "whole up to epoch 6" in error.hint


def test_an_error_of_this_library_is_not_blamed_on_the_users_functions():
    error = explain(Exception(TASK.format(error="ValueError: odd")), {"price_of": "v"}, ["v"], NEXT)
    assert isinstance(error, Failed)
    assert str(error).splitlines()[0] == 'epoch 7 failed in view "v": ValueError: odd'


def test_a_users_function_is_named_with_its_own_frames_only():
    error = explain(Exception(USERS), {"price_of": "prices"}, ["prices", "others"], NEXT)
    lines = str(error).splitlines()
    assert lines[0] == 'a function in view "prices" raised an error in epoch 7:'
    assert "ZeroDivisionError: division by zero" in lines
    assert not any("pyspark" in line for line in lines)


def test_no_line_of_java_follows_the_users_own():
    java = "\n\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)\n\tat java.lang.Thread.run(Thread.java:2)\n"
    text = str(explain(Exception(USERS + java), {"price_of": "prices"}, ["prices"], NEXT))
    assert "ZeroDivisionError: division by zero" in text and "\tat " not in text


@pytest.mark.parametrize("file", ["/home/ann/nosync/shop.py", "/home/ann/my pyspark/pyspark/nosync/shop.py", "/nosync/pyspark/shop.py"])
def test_a_users_folder_may_be_called_as_the_library_is(file: str) -> None:
    ours = Path(nosync.__file__).parent / "spark" / "task.py"
    trace = USERS.replace("/home/ann/shop.py", file).replace("/venv/site-packages/pyspark/worker.py", str(ours))
    lines = str(explain(Exception(trace), {"price_of": "prices"}, ["prices", "others"], NEXT)).splitlines()
    assert lines[0] == 'a function in view "prices" raised an error in epoch 7:'
    assert f'  File "{file}", line 3, in price_of' in lines and "    return 1 / 0" in lines
    assert not any("task.py" in line for line in lines)


def test_a_failed_recovery_says_which_epochs_of_what_were_computed_again() -> None:
    error = explain(KeyError("input is unreadable"), {}, ["v"], Job(1, 3, ("v/aggregate",)))
    assert error.message == "recomputing epochs 1 to 3 of v/aggregate failed in view \"v\": 'input is unreadable'"
    assert "whole up to" not in error.hint and "what is recorded stays" in error.hint.lower()


@pytest.mark.parametrize(
    "words",
    [
        "'NoneType' object has no attribute 'setLocalProperty'",
        "Cannot call methods on a stopped SparkContext.",
        "Job 5 cancelled because SparkContext was shut down",
    ],
)
def test_a_session_that_was_stopped_under_the_run_is_no_error_of_the_program(words):
    error = explain(AttributeError(words), {}, ["v"], NEXT)
    assert isinstance(error, Failed)
    assert error.message == "the SparkSession was stopped under the run, in epoch 7"
    assert "whole up to epoch 6" in error.hint and "start the flow again on the same home" in error.hint
