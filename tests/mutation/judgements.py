"""Mutants that change nothing that is promised, each with the reason (`equivalent.toml`).

A table for each file; in it, by `function::kind::digest` of the mutant, why no test can or should notice it.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from .mutants import Mutant

PATH = Path(__file__).parent / "equivalent.toml"


def read(path: Path = PATH) -> dict[str, str]:
    """By the mutants' names, the reasons."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {f"{file}::{key}": reason for file, reasons in tables.items() for key, reason in reasons.items()}


def stale(judged: Iterable[str], mutants: Iterable[Mutant]) -> list[str]:
    """Judgements of mutants that do not exist any more: the source has changed, and they must be judged anew."""
    existing = {mutant.name for mutant in mutants}
    return sorted(set(judged) - existing)
