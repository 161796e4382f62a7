"""Nothing that is read back can become code."""

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest

from nosync.model.errors import Invalid
from nosync.pipelines.spec import read_spec

TOOL: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[2] / "tools/data_only.py"))


def test_no_module_of_ours_turns_bytes_into_code() -> None:
    assert TOOL["main"]() == 0


@pytest.mark.parametrize("line", [
    "import pickle", "import os.path, marshal", "from pyspark import cloudpickle", "from pyspark.serializers import CPickleSerializer",
    "eval('1')", "exec(text)", "np.load(file, allow_pickle=True)", "pandas.read_pickle(file)", "class T(pa.PyExtensionType): pass",
    "import yaml", 'needed("yaml", "extra", "what")', 'importlib.import_module("pickle")', "yaml.load(text)", "yaml.unsafe_load(text)",
])  # fmt: skip
def test_the_check_finds_what_it_is_for(line: str) -> None:
    assert list(TOOL["offences"](ast.parse(line)))


def test_methods_that_only_share_a_name_are_no_offence() -> None:
    assert not list(TOOL["offences"](ast.parse("re.compile('x'); plan.eval(row)")))


def test_the_file_of_a_pipeline_holds_plain_values_only(tmp_path: Path) -> None:
    (tmp_path / "spark-pipeline.yml").write_text(f"name: !!python/object/apply:os.mkdir ['{tmp_path}/made']")
    with pytest.raises(Invalid, match="is no YAML: could not determine a constructor"):
        read_spec(tmp_path / "spark-pipeline.yml")
    assert not (tmp_path / "made").exists()
