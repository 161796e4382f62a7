"""A project's files, run and read: what comes out is a `Project`, and nothing has been computed."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nosync.bridge.sessions import active
from nosync.model.errors import Invalid, NosyncError
from nosync.model.extras import needed
from nosync.model.quoting import quoted
from nosync.pipelines.definitions import Namespace, Project
from nosync.pipelines.reading import names_known, session_unchanged
from nosync.pipelines.spec import Spec

OF_CONNECT = ("grpc", "grpc_status", "google.rpc", "zstandard", "pyspark.sql.connect.functions")  # what pyspark.pipelines imports


def load_project(spec: Spec, spark: SparkSession) -> Project:
    """All that the files of a project define."""
    for module in OF_CONNECT:
        needed(module, "pipelines", "pyspark.pipelines")
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context

    from nosync.pipelines.registry import Registry

    exact = str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"
    namespace = Namespace(spec.catalog or spark.catalog.currentCatalog(), spec.database or spark.catalog.currentDatabase(), exact)
    if not spark.catalog.databaseExists(f"{quoted(namespace.catalog)}.{quoted(namespace.database)}"):
        hint = f"Make it: CREATE DATABASE {namespace.database}. A catalog in memory forgets it when Spark ends."
        raise Invalid(f'there is no database "{namespace.database}"', hint=hint)
    project = Project(namespace)
    registry = Registry(spark, project, spec.folder)
    with active(spark), _inside(spec.folder), graph_element_registration_context(registry), names_known():
        for path in spec.sources():
            if path.suffix == ".py":
                _run(path, spark, str(path.relative_to(spec.folder)))
            elif path.suffix == ".sql":
                registry.register_sql(path.read_text(encoding="utf-8"), path.relative_to(spec.folder))
            else:
                raise Invalid(f'"{path}" is neither Python nor SQL', hint="Move it out of the folders that `libraries` names.")
    if not project.datasets:
        raise Invalid(f'the pipeline "{spec.name}" defines nothing', hint="Name its files under `libraries`.")
    project.check()
    return project


def _run(path: Path, spark: SparkSession, name: str) -> None:
    """As `spark-pipelines` runs it: with `spark` in it. Its functions travel to Spark's workers by value."""
    found = importlib.util.spec_from_file_location(f"__pipeline__ {name}", path)
    assert found is not None and found.loader is not None, path
    module = importlib.util.module_from_spec(found)
    module.__dict__["spark"] = spark
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        with session_unchanged():
            found.loader.exec_module(module)
    except NosyncError:
        raise
    except PySparkException as error:
        raise Invalid(f'"{path}" could not be loaded: {str(error).splitlines()[0]}', hint="Correct the file.") from error
    except Exception as error:
        said = str(error).strip().splitlines() or [""]
        raise Invalid(f'"{path}" could not be loaded: {type(error).__name__}: {said[0]}', hint="Correct the file.") from error


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Relative paths in a project start at its file."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
