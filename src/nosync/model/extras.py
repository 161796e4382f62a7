"""Packages that only some calls need: extras of this one, found when they are used. Nothing else in the library imports one."""

import importlib
from types import ModuleType
from typing import Any

from nosync.model.errors import Invalid


def needed(module: str, extra: str, what: str) -> Any:
    """The module; `Invalid`, which names the package and its extra, where it cannot be had. `what` is what asks for it."""
    package = module.partition(".")[0]
    try:
        found: ModuleType = importlib.import_module(module)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == package
        why = "which is not installed" if absent else f"which cannot be imported: {error}"
        raise Invalid(f"{what} needs the package {package}, {why}", hint=f"Install it: pip install 'nosync[{extra}]'") from None
    return found
