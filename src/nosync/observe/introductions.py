"""How the objects of a user introduce themselves: in a line, and as HTML in a notebook."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from nosync.model.status import Status
from nosync.observe.text import visible


def flow_in_a_line(name: str, sources: Iterable[str], views: Iterable[str], sinks: Iterable[str], where: str) -> str:
    """`Flow "shop": source purchases; views spend, whales; running`."""
    parts = [listed("source", sources), listed("view", views), listed("sink", sinks), where]
    return visible(f'Flow "{name}": {"; ".join(filter(None, parts)) or "nothing declared yet"}')


def listed(noun: str, names: Iterable[str]) -> str:
    found = [*names]
    return f"{noun}{'s' if len(found) > 1 else ''} {', '.join(found)}" if found else ""


def status_in_a_line(status: Status, home: str) -> str:
    """`flow "shop" on state/shop: running, epoch 12, safe after loss of process 12, host 11; views spend, whales`."""
    safe = ", ".join(f"{failure} {epoch}" for failure, epoch in status.safe.items())
    return visible(
        f'flow "{status.flow}" on {home}: {status.phase}, epoch {status.epoch}'
        + (f", safe after loss of {safe}" if status.epoch else "")
        + (f"; {listed('view', status.views)}" if status.views else "")
    )


def status_as_html(status: Status, home: str, rows: Mapping[str, str]) -> str:
    """Facts on top, then a line for each view with its `rows`."""
    facts = {
        "flow": status.flow, "home": home, "now": status.message, "epoch": f"{status.epoch:,}",
        "safe after loss of": ", ".join(f"{failure} {epoch:,}" for failure, epoch in status.safe.items()) or "-",
        **{f"sink {name}": f"has epochs up to {epoch:,}{status.then(name)}" for name, epoch in status.sinks.items()},
    }  # fmt: skip
    return table([("", ""), *facts.items()]) + table([("view", "rows"), *((name, rows.get(name, "")) for name in status.views)])


def table(lines: Sequence[Sequence[str]]) -> str:
    """The first line is the heading."""
    head, *rest = lines
    heading = "".join(f"<th>{_cell(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in line)}</tr>" for line in rest)
    return f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    return escape(visible(text))
