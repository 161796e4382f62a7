"""Takes the flow out of a user's Python file.

The file is run as a module of its own, its folder importable as when Python runs it. Functions defined in it travel to Spark's workers by
value, since the workers could not import it.
"""

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

from pyspark import cloudpickle

import nosync
from nosync.model.errors import Invalid, NosyncError
from nosync.spark.session import calm_sessions

MODULE = "__flow__"


def load_flow(path: Path) -> "nosync.Flow":
    """The variable `flow` of the file; `Invalid` says what the file lacks, with the user's own traceback where it raised."""
    with calm_sessions():
        module = _run(path)
    found = getattr(module, "flow", None)
    if found is None:
        raise Invalid(f'"{path}" defines no variable "flow"', hint='Assign the flow to it: flow = nosync.Flow("name").')
    if not isinstance(found, nosync.Flow):
        raise Invalid(
            f'"flow" in "{path}" is not a Flow but of type {type(found).__name__}',
            hint='Assign the flow to it: flow = nosync.Flow("name").',
        )
    return found


def _run(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise Invalid(f'"{path}" is not a Python file', hint="Name a file that ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    sys.path.insert(0, str(path.resolve().parent))
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        spec.loader.exec_module(module)
    except NosyncError:
        raise
    except Exception as error:
        raise Invalid(f'"{path}" could not be loaded: {_first_line(error)}', hint=_own_traceback(error, path)) from error
    return module


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _own_traceback(error: Exception, path: Path) -> str:
    """The user's part of the traceback: what lies between this command and their file is left out."""
    step: TracebackType | None = error.__traceback__
    while step is not None and Path(step.tb_frame.f_code.co_filename).resolve() != path.resolve():
        step = step.tb_next
    return "".join(traceback.format_list(traceback.extract_tb(step)) if step else traceback.format_exception_only(error)).rstrip()
