"""Sets two hosts up, with a server between them, and lets a list of steps happen."""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nosync.store.objects import open_remote
from tests.crash.hosts import Host
from tests.crash.two_hosts import TwoHosts
from tests.servers.s3 import BUCKET, Server, versitygw

KINDS = {
    "local[1,8]": {
        "driver": 3, "early": 3, "recovering": 2, "worker": 14, "merger": 2,
        "partition": 2, "rival": 1, "standby": 3, "answers": 2, "slow": 3, "full": 3,
    },
    "local-cluster[1,1,512]": {"executor": 6, "worker": 4, "driver": 1, "partition": 1, "answers": 1, "full": 1},
}  # fmt: skip
STEPS = {"local[1,8]": 24, "local-cluster[1,1,512]": 8}  # with one history


@contextmanager
def two_hosts(shared: Path, master: str, seed: int) -> Iterator[TwoHosts]:
    """On a server of their own. Whatever happens, all processes have ended afterwards."""
    shared.mkdir(parents=True)
    with ExitStack() as stack:
        server = stack.enter_context(versitygw(shared / "server"))
        stack.enter_context(settings_of(server))
        url = f"s3://{BUCKET}/flow"
        hosts = []
        for name in ("first", "second"):
            hosts.append(Host(name, shared, master, server, url))
            stack.callback(hosts[-1].close)
        yield TwoHosts(hosts[0], hosts[1], open_remote(url), shared, random.Random(seed))


@contextmanager
def settings_of(server: Server) -> Iterator[None]:
    """The environment of this process, which reaches the server directly."""
    before = {name: os.environ.get(name) for name in server.settings()}
    os.environ.update(server.settings())
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def suffer(
    shared: Path, master: str, seed: int, kinds: Sequence[str], kills: int, judge: Callable[[TwoHosts], None] | None = None
) -> TwoHosts:
    """The steps in this order, until so many processes were killed; an undisturbed end, and everything that was promised. Where there is a
    `judge`, both hosts come to that end.
    """
    with two_hosts(shared, master, seed) as both:
        try:
            for kind in kinds:
                if both.kills < kills:
                    both.step(kind)
            both.finish(hosts=2 if judge else 1)
            if judge:
                judge(both)
        except BaseException as error:
            error.add_note(f"seed {seed}, {master}, steps {' '.join(kinds)}; {both}; the last were {' '.join(both.steps[-3:])}")
            raise
        both.check_secrets()
        return both
