"""The file of a project, `spark-pipeline.yml`: read as `spark-pipelines` reads it, and made by `init` as that makes it."""

import glob
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from nosync.model.arguments import did_you_mean
from nosync.model.errors import Invalid
from nosync.model.extras import needed

FILES = ("spark-pipeline.yaml", "spark-pipeline.yml")
REQUIRED = ("name", "storage")
FIELDS = (*REQUIRED, "catalog", "database", "schema", "configuration", "libraries")
SPEC = """
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""
PYTHON = """from pyspark import pipelines as dp
from pyspark.sql import DataFrame

@dp.materialized_view
def example_python_materialized_view() -> DataFrame:
    return spark.range(10)
"""
SQL = """CREATE MATERIALIZED VIEW example_sql_materialized_view AS
SELECT id FROM example_python_materialized_view
WHERE id % 2 = 0
"""


@dataclass(frozen=True)
class Spec:
    """What the file of a project says. `folder` is where it lies: globs and relative paths start there."""

    folder: Path
    name: str
    storage: Path
    catalog: str | None
    database: str | None
    configuration: Mapping[str, str]
    libraries: tuple[str, ...]

    def sources(self) -> Iterator[Path]:
        """The files that define something, as `spark-pipelines` finds them."""
        for pattern in self.libraries:
            for path in self.folder.glob(pattern):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield path


def find_spec(folder: Path) -> Path:
    """The file of the project that a folder belongs to: there, or in a folder above."""
    for place in (folder, *folder.parents):
        found = [place / name for name in FILES if (place / name).is_file()]
        if len(found) > 1:
            raise Invalid(f'"{place}" has both {" and ".join(FILES)}', hint="Keep one of them, or pass --spec.")
        if found:
            return found[0]
    raise Invalid(
        f'there is no {FILES[1]} in "{folder}" or above', hint="Go into a project, pass --spec, or make one: nosync pipelines init."
    )


def read_spec(path: Path) -> Spec:
    yaml = needed("yaml", "pipelines", "a file of a pipeline")
    if not path.is_file():
        raise Invalid(f'there is no file "{path}"', hint="Correct --spec.")
    try:
        said = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid(f'"{path}" is no YAML: {str(error).splitlines()[0]}', hint="Correct the file.") from None
    return _spec(path, said)


def _spec(path: Path, said: Any) -> Spec:
    said = _mapping(path, "the file", said)
    for name in said:
        if name not in FIELDS:
            raise Invalid(f'"{path}" has a field "{name}", which is not known', hint=f"{did_you_mean(str(name), FIELDS)}Leave it out.")
    for name in REQUIRED:
        if not isinstance(said.get(name), str):
            raise Invalid(f'"{path}" lacks the field "{name}"', hint=f"Add a line: {name}: ...")
    configuration = _mapping(path, "configuration", said.get("configuration") or {})
    for key, value in configuration.items():
        if not isinstance(value, str):
            raise Invalid(f'"{path}": {key} is {value!r}, not a text', hint=f'Put it in quotes: {key}: "{value}"')
    try:
        libraries = tuple(_pattern(path, entry["glob"]["include"]) for entry in said.get("libraries") or [])
    except (KeyError, TypeError):
        raise Invalid(
            f'"{path}": libraries has an entry without a glob', hint="Write `- glob:`, and below it `include: folder/**`."
        ) from None
    database = said.get("database", said.get("schema"))
    return Spec(path.parent.resolve(), said["name"], _local(path, said["storage"]), said.get("catalog"), database, configuration, libraries)


def _mapping(path: Path, what: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(f'"{path}": {what} is no mapping', hint="Write lines of the form `name: value`.")
    return value


def _pattern(path: Path, said: str) -> str:
    """A file, or a folder with all that is below it."""
    if not glob.has_magic(said):
        return said
    if said.endswith("/**") and not glob.has_magic(said[:-3]):
        return f"{said}/*"
    raise Invalid(f'"{path}": the glob "{said}" is not allowed', hint="Name a file, or a folder with /** behind it.")


def _local(path: Path, storage: str) -> Path:
    """Where the state of the flow goes: a folder of this machine, or one that is mounted."""
    parts = urlparse(storage)
    if parts.scheme not in ("", "file"):
        hint = "Name a folder: storage: file:///path. A copy in an object store is kept by `nosync pipelines run --remote`."
        raise Invalid(f'"{path}": storage "{storage}" is no folder of this machine', hint=hint)
    return (path.parent / (unquote(parts.path) if parts.scheme else storage)).resolve()


def make_project(folder: Path, name: str) -> Path:
    """The same sample project as `spark-pipelines init` makes."""
    project = folder / name
    if project.exists():
        raise Invalid(f'"{project}" is there already', hint="Choose another name, or remove it.")
    storage = project / "pipeline-storage"
    storage.mkdir(parents=True)
    transformations = project / "transformations"
    transformations.mkdir()
    (project / FILES[1]).write_text(SPEC.format(name=name, storage=f"file://{storage.resolve()}"), encoding="utf-8")
    (transformations / "example_python_materialized_view.py").write_text(PYTHON, encoding="utf-8")
    (transformations / "example_sql_materialized_view.sql").write_text(SQL, encoding="utf-8")
    return project
