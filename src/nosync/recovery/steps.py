"""How far a recovery is: read off its plan, before each file that it fetches and each job that it runs. Pure."""

from collections.abc import Iterable

from nosync.journal.image import Image
from nosync.model.layers import LayerInfo, TraceRange
from nosync.model.status import Recovery
from nosync.recovery.plan import Plan, Recompute


class Steps:
    """The files of a plan, then its jobs. A shard is whole when nothing of it is left to be fetched or computed."""

    def __init__(self, image: Image, plan: Plan) -> None:
        layers = {layer.path: layer for layer in image.layers()}
        self.fetched = [layers.get(name) for name in plan.fetch]
        self.jobs = plan.jobs
        self.missing = [_inside(job, plan.missing) for job in plan.jobs]
        parts = {_part(layer) for layer in self.fetched if layer}
        self.parts = parts | {part for job in plan.jobs for part in parts_of(job)}
        self.bytes = _bytes(self.fetched) + sum(map(_bytes, self.missing))

    def before_file(self, number: int) -> Recovery:
        """With so many files fetched."""
        what = f"fetching file {number + 1:,} of {len(self.fetched):,} from the remote"
        return self._at(what, number, 0)

    def before_job(self, job: Recompute) -> Recovery:
        """With all files there, and the jobs before this one done."""
        what = f"recomputing epochs {job.first} to {job.last} of {', '.join(sorted(job.targets))}"
        return self._at(what, len(self.fetched), self.jobs.index(job))

    def _at(self, what: str, files: int, jobs: int) -> Recovery:
        left = {_part(layer) for layer in self.fetched[files:] if layer} | {part for job in self.jobs[jobs:] for part in parts_of(job)}
        done = _bytes(self.fetched[:files]) + sum(map(_bytes, self.missing[:jobs]))
        return Recovery(what, len(self.parts - left), len(self.parts), done, self.bytes)


def parts_of(job: Recompute) -> list[TraceRange]:
    return [(trace, held) for trace, ranges in job.targets.items() for held in sorted(ranges)]


def _part(layer: LayerInfo) -> TraceRange:
    return layer.trace, layer.range


def _bytes(layers: Iterable[LayerInfo | None]) -> int:
    return sum(layer.bytes for layer in layers if layer is not None)


def _inside(job: Recompute, missing: Iterable[LayerInfo]) -> list[LayerInfo]:
    """What a job brings back of what is missing, as far as its size is known."""
    wanted = set(parts_of(job))
    return [layer for layer in missing if _part(layer) in wanted and job.first <= layer.lower and layer.upper <= job.last + 1]
