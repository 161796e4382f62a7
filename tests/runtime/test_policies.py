"""A flow that runs under another policy: what a loss of its state means is what that policy said, whatever is chosen next."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.model.policies.log_structured import LOG_STRUCTURED
from nosync.model.policies.table import POLICIES
from nosync.model.policy import Policy
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from tests.other_policies import GAP, UPSTREAM_BACKUP


class Shop:
    """Counts what comes, and sends it to a sink. The state is lost between two runs."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.flow = ns.Flow("shop", spark)
        (folder / "in").mkdir()
        rows = self.flow.source("rows", ns.files(folder / "in", format="csv", schema="n int"))
        counted = rows.groupBy("n").agg(F.count("*").alias("often"))
        self.flow.view("counted", counted)
        self.flow.sink("out", counted, ns.parquet(folder / "out"))

    def run(self, policy: Policy, *numbers: int) -> Stepping:
        for number in numbers:
            (self.folder / "in" / f"{number}.csv").write_text(f"{number % 2}\n")
        stepping = begin(replace(self.flow.program(), policy=policy), self.home, 2).recover()
        while stepping.step() is not None:
            pass
        stepping.close()
        stepping.outlet.close()
        return stepping

    def counts(self) -> dict[int, int]:
        return {row["n"]: row["often"] for row in ns.open(self.home).view("counted").to_pylist()}


@pytest.fixture
def shop(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for policy in (GAP, UPSTREAM_BACKUP):
        monkeypatch.setitem(POLICIES, policy.name, policy)
    return Shop(quick, tmp_path)


def test_under_upstream_backup_lost_state_is_computed_from_the_input(shop: Shop) -> None:
    first = shop.run(UPSTREAM_BACKUP, 1, 2, 3)
    assert first.upkeep.duties().keys() == {"host", "sink out", "tidy"}
    shutil.rmtree(shop.home / "layers")
    again = shop.run(LOG_STRUCTURED, 4)
    assert again.recovered.recomputed > 0 and shop.counts() == {0: 2, 1: 2}


def test_under_gap_lost_state_is_forgotten_and_the_flow_goes_on(shop: Shop) -> None:
    shop.run(GAP, 1, 2, 3)
    assert ns.open(shop.home).safe == {"process": 1}
    shutil.rmtree(shop.home / "layers")
    again = shop.run(LOG_STRUCTURED, 4)
    assert again.recovered.recomputed == 0 and shop.counts() == {0: 1}
    assert ns.open(shop.home).image.declared.policy == "log-structured"  # type: ignore[union-attr]


def test_a_start_that_was_killed_while_it_recovered_does_not_change_what_the_loss_means(shop: Shop) -> None:
    shop.run(GAP, 1, 2, 3)
    shutil.rmtree(shop.home / "layers")
    begin(replace(shop.flow.program(), policy=LOG_STRUCTURED), shop.home, 2).outlet.close()
    assert shop.run(LOG_STRUCTURED, 4).recovered.recomputed == 0 and shop.counts() == {0: 1}


def test_a_sink_promises_what_the_policy_of_the_run_can_keep(shop: Shop) -> None:
    program = shop.flow.program()
    assert program.promises()["out"].guarantee == "precise"
    assert replace(program, policy=GAP).promises()["out"].guarantee == "gap"
    assert "gap, released when safe" in str(replace(program, policy=GAP).picture())
