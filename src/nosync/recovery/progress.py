"""How far a recovery is: read off its plan, before each file that it fetches and each job that it runs. Pure."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from nosync.journal.image import Image
from nosync.model.layers import LayerInfo, TraceRange
from nosync.model.status import Recovery
from nosync.recovery.plan import Plan
from nosync.recovery.recompute import Recompute


class RecoveryProgress:
    """The files of a plan, then its jobs. A shard is whole when nothing of it is left to be fetched or computed."""

    def __init__(self, image: Image, plan: Plan) -> None:
        layers = {layer.path: layer for layer in image.layers()}
        fetched = [[layers[name]] if name in layers else [] for name in plan.fetch]
        made = [_inside(job, plan.missing) for job in plan.jobs]
        last = {_part(layer): step for step, found in enumerate(fetched) for layer in found}
        last |= {part: len(fetched) + number for number, job in enumerate(plan.jobs) for part in parts_of(job)}
        self.files, self.jobs, self.last = len(fetched), plan.jobs, sorted(last.values())
        self.bytes = list(accumulate((sum(layer.bytes for layer in found) for found in (*fetched, *made)), initial=0))

    def before_file(self, number: int) -> Recovery:
        """With so many files fetched."""
        return self._at(f"fetching file {number + 1:,} of {self.files:,} from the remote", number)

    def before_job(self, job: Recompute) -> Recovery:
        """With all files there, and the jobs before this one done."""
        what = f"recomputing epochs {job.first} to {job.last} of {', '.join(sorted(job.targets))}"
        return self._at(what, self.files + self.jobs.index(job))

    def _at(self, what: str, step: int) -> Recovery:
        return Recovery(what, bisect_left(self.last, step), len(self.last), self.bytes[step], self.bytes[-1])


def parts_of(job: Recompute) -> list[TraceRange]:
    return [(trace, held) for trace, ranges in job.targets.items() for held in sorted(ranges)]


def _part(layer: LayerInfo) -> TraceRange:
    return layer.trace, layer.range


def _inside(job: Recompute, missing: Iterable[LayerInfo]) -> list[LayerInfo]:
    """What a job brings back of what is missing, as far as its size is known."""
    return [layer for layer in missing if job.replaces(layer)]
