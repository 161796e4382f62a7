"""What a Python function says, as far as that can be seen without running it: tells apart functions that are called alike."""

from types import CodeType, FunctionType
from typing import Any

from nosync.bridge.functions import Function

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def code_of(function: Function) -> str:
    """Its instructions, with the plain values that it has from where it was made."""
    return _said(function)


def _said(value: Any) -> str:
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{_said(value.__code__)} {_said((*held, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()))}"
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {_said(value.co_consts)}"
    if isinstance(value, tuple):
        return str([_said(one) for one in value])
    return f"{type(value).__name__} {value!r}" if isinstance(value, PLAIN) else type(value).__qualname__
