"""Views of a running flow, and their changes, as DataFrames that read the log when they are used. What they read is held a while."""

from pyspark.sql import DataFrame

from nosync.history.moments import epoch_at
from nosync.history.record import ViewRecord
from nosync.history.view_covers import Past, covers_at, find_view
from nosync.model.identifiers import Epoch
from nosync.model.moment import At
from nosync.runtime.program import Program, record_of
from nosync.runtime.stepping import Stepping
from nosync.spark.read import steps_frame, view_frame


def known_view(program: Program, name: str) -> ViewRecord:
    """`Invalid` where the program has no view of that name."""
    return find_view({view.name: record_of(view) for view in program.graph.views.values()}, name)


def view_of(program: Program, stepping: Stepping, name: str, at: At) -> DataFrame:
    """The rows of a view as of an epoch."""
    record = known_view(program, name)
    stepping.upkeep.leases.hold(stepping.journal.number)
    image, base = stepping.journal.snapshot()
    past = Past(stepping.disk, stepping.remote, base)
    epoch = epoch_at(at, image, past.openings, lambda: Epoch(min(stepping.upkeep.safe().values())))
    covers = covers_at(image, record, name, epoch, past)
    stepping.bring(covers)
    schema = program.graph.views[name].schema
    return view_frame(program.spark, str(stepping.home), record, covers, stepping.shards, schema, stepping.sharing)


def changes_of(program: Program, stepping: Stepping, name: str, since: At, until: At) -> DataFrame:
    """What epochs have added to a view and taken from it."""
    home = stepping.opened()
    home.lend()
    found = home.change_steps(name, since, until)
    for step in found:
        home.bring(step)
    return steps_frame(program.spark, str(home.path), home.record(name), found, program.graph.views[name].schema, stepping.sharing)
