"""Packages that only some connectors need: extras of this one, found when they are used."""

import importlib
from types import ModuleType
from typing import Any

from nosync.model.errors import Invalid


def needed(module: str, extra: str, what: str) -> Any:
    """The module; `Invalid`, which names the extra, where it is not installed. `what` is what asks for it."""
    try:
        found: ModuleType = importlib.import_module(module)
    except ImportError as error:
        raise Invalid(f"{what} needs the package of {module}: {error}", hint=f"Install it: pip install 'nosync[{extra}]'") from None
    return found
