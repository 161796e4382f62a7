"""Statements of SQL that `flow.sql` takes: queries, and views over them. Anything else would do something at once, and to nothing."""

import re
from collections.abc import Iterable

from nosync.model.arguments import did_you_mean
from nosync.model.errors import Invalid, Refused

QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--[^\n]*|/\*.*?\*/""", re.DOTALL)  # texts and comments of SQL
WATERMARK = re.compile(r"\bwatermark\b.{1,200}?\bdelay\s+of\b", re.IGNORECASE | re.DOTALL)
DOING = re.compile(
    r"\s*(insert|update|delete|merge|truncate|drop|alter|refresh|cache|uncache|set|use|create\s+(?!.*?\bview\b)\w+)\b", re.IGNORECASE
)
CREATING = re.compile(r"\s*create\b.*?\bview\b", re.IGNORECASE | re.DOTALL)
MATERIALIZED = re.compile(
    r"\s*create\s+(or\s+(refresh|replace)\s+)?(materialized\s+view|(streaming\s+)?(live\s+)?table)\b", re.IGNORECASE
)
MISSING = re.compile(r"table or view (`.+`|[^`]\S*) cannot be found", re.IGNORECASE)
FORM = 'Write a query, or "create view NAME as select ...".'


def check_statement(statement: str) -> None:
    """Before Spark sees it."""
    bare = QUOTED.sub("", statement)
    if not bare.strip(" \n\t;"):
        raise Invalid("the statement is empty", hint=FORM)
    if WATERMARK.search(bare):
        hint = 'Say it to the source: flow.source(..., watermark=("at", "10 seconds")).'
        raise Refused("a watermark in SQL has no effect on a source", hint=hint)
    if MATERIALIZED.match(bare) is not None and re.search(r"\bas\b", bare, re.IGNORECASE):
        raise Invalid("in a flow, what is kept up to date is a view", hint='Write "create view NAME as select ...".')
    if (doing := DOING.match(bare)) is not None:
        words = " ".join(doing[1].lower().split())
        hint = f"{FORM} For others there is spark.sql."
        raise Invalid(f'"{words}" is no query: it would be done once, when the flow is declared', hint=hint)


def not_valid(statement: str, words: str, known: Iterable[str]) -> Invalid:
    """What Spark said of it, and what there is."""
    names = list(known)
    missing = MISSING.search(words)
    name = missing[1].replace("`.`", ".").strip("`") if missing else ""
    quoted = f"With a dot in its name it stands in backquotes: `{name}`. " if name in names else ""
    hint = f"{quoted or did_you_mean(name, names)}There are: {', '.join(names) or 'no sources'}."
    if "[UNRESOLVED_ROUTINE]" in words:
        hint = "Correct its name, or make it known: spark.udf.register(name, function)."
    if "[PARSE_SYNTAX_ERROR]" in words:
        hint = f"Correct it there: it is Spark's SQL, over {', '.join(names) or 'no sources'}."
    if CREATING.match(statement) and not re.search(r"\bas\b", statement, re.IGNORECASE):
        hint = 'Write "create view NAME as select ...", with the "as".'
    return Invalid(f"the statement is not valid: {words}", hint=hint)
