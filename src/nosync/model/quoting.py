"""Names that the user chose freely, where they stand inside other texts. Pure."""

from nosync.model.errors import Invalid


def quoted(name: str) -> str:
    """A column or table in Spark's SQL, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def check_name(name: object, what: str) -> None:
    """Refuses what cannot name a flow, source, view or sink: nothing, what is no text, and slashes, which part the names of traces."""
    if not isinstance(name, str) or not name or "/" in name:
        raise Invalid(f"{name!r} is no name for {what}", hint="Use any text without slashes.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{name!r} is no name for {what}", hint="Half of a pair of surrogates is no character: use a text.") from None
