"""For `make docs`: examples in docstrings (`>>> ...`, as doctest reads them) are blocks of code in the reference, not quotations."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=^\s*$|\Z)", re.DOTALL | re.MULTILINE)


class Examples(griffe.Extension):
    """Called by mkdocstrings for each object that it reads."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """As Markdown."""
    return EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0].rstrip().replace('<BLANKLINE>', '')}\n```\n", text)
