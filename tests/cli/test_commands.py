"""The commands on a real flow: run it, ask for its state, read its views as of any epoch."""

import json
import os

import pytest
from click.testing import CliRunner

from nosync.cli.main import main

FLOW = """
import nosync as ns
from pyspark.sql import functions as F

@F.udf("double")
def doubled(price):
    return 2 * price

flow = ns.Flow("shop")
purchases = flow.source("purchases", ns.files({folder!r}, format="json", schema="user string, price double", maxFilesPerTrigger=1))
flow.view("spend", purchases.groupBy("user").agg(F.sum("price").alias("spent"), F.count("*").alias("orders")))
flow.view("twice", purchases.groupBy("user").agg(F.sum(doubled("price")).alias("spent")))
"""
FILES = [
    [{"user": "ann", "price": 1.5}, {"user": "bob", "price": 2.0}],
    [{"user": "ann", "price": 3.0}],
]


def call(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def shop(spark, tmp_path_factory):
    """A home with two epochs: (folder, the answer to `run`)."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "in").mkdir()
    for number, rows in enumerate(FILES):
        (folder / "in" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "flow.py").write_text(FLOW.format(folder=str(folder / "in")))
    return folder, call("run", folder / "flow.py", "--home", folder / "home", "--shards", 2, "--available-now")


def rows(folder, view, *options):
    result = call("show", folder / "home", view, "--json", *options)
    assert result.exit_code == 0, result.output
    return sorted(json.loads(result.stdout)["rows"], key=lambda row: row["user"])


def test_run_reports_each_epoch(shop):
    _, result = shop
    assert result.exit_code == 0, result.output
    reported = [line.split() for line in result.stdout.splitlines() if line.startswith("epoch")]
    assert [(line[1], line[2]) for line in reported] == [("1", "2"), ("2", "1")]


def test_show_gives_the_newest_epoch(shop):
    assert rows(shop[0], "spend") == [{"user": "ann", "spent": 4.5, "orders": 2}, {"user": "bob", "spent": 2.0, "orders": 1}]


def test_show_gives_an_earlier_epoch_as_it_was(shop):
    assert rows(shop[0], "spend", "--at", 1) == [{"user": "ann", "spent": 1.5, "orders": 1}, {"user": "bob", "spent": 2.0, "orders": 1}]


def test_functions_of_the_file_run_on_the_workers(shop):
    assert rows(shop[0], "twice") == [{"user": "ann", "spent": 9.0}, {"user": "bob", "spent": 4.0}]


def test_show_reports_people_how_much_is_left_out(shop):
    result = call("show", shop[0] / "home", "spend", "--limit", 1)
    assert "spend as of epoch 2: 1 of 2 rows" in result.stdout
    assert "orders" in result.stdout


def test_status_reports_the_views_with_rows_and_columns(shop):
    result = call("status", shop[0] / "home", "--json", "--rows")
    facts = json.loads(result.stdout)
    assert facts["epoch"] == 2
    spend = next(view for view in facts["views"] if view["name"] == "spend")
    assert spend["rows"] == 2
    assert spend["columns"][0] == {"name": "user", "type": "string"}


def test_status_for_people_names_the_same(shop):
    text = call("status", shop[0] / "home").stdout
    assert "spend" in text
    assert "user string" in text


def test_status_reports_what_is_safe_and_who_ran_it(shop):
    facts = json.loads(call("status", shop[0] / "home", "--json").stdout)
    assert facts["safe"] == {"process": 2, "host": 2}
    assert facts["startedBy"]["process"] == os.getpid()
    text = call("status", shop[0] / "home").stdout
    assert "process 2, host 2" in text
    assert f"process {os.getpid()} on" in text


def test_a_lost_home_comes_back_from_the_remote_and_run_says_so(shop):
    folder, _ = shop
    remote = ("--remote", f"file://{folder}/remote", "--recover-within", "5s")
    call("run", folder / "flow.py", "--home", folder / "home", "--available-now", *remote)
    result = call("run", folder / "flow.py", "--home", folder / "other", "--available-now", *remote)
    assert result.exit_code == 0, result.output
    assert "recovered to epoch 2: " in result.stdout
    assert "files fetched from the remote" in result.stdout
    assert call("fsck", folder / "other", "--remote", remote[1]).exit_code == 0
    result = call("run", folder / "flow.py", "--home", folder / "other", "--available-now")
    assert result.exit_code == 1
    assert f'has a copy on "{remote[1]}"' in result.output


def test_fsck_of_a_real_home_finds_everything_there(shop):
    result = call("fsck", shop[0] / "home")
    assert result.exit_code == 0, result.output
    assert "spend: every epoch can be read, epochs 1 to 2" in result.output


def test_explain_reports_the_graph_and_the_figures_of_a_home(shop):
    text = call("explain", shop[0] / "home", "--svg", shop[0] / "flow.svg").stdout
    assert "accumulate spend/aggregate" in text
    assert "now    " in text
    assert (shop[0] / "flow.svg").read_text().startswith("<svg")
    boxes = json.loads(call("explain", shop[0] / "home", "--json").stdout)["boxes"]
    rows = next(box for box in boxes if box["name"] == "spend/aggregate")["figures"]["rows"]
    assert rows in (2, 3)  # ann lies in two layers until they are merged
    assert "now" not in call("explain", shop[0] / "flow.py").stdout


def test_an_unknown_view_is_an_error_without_a_traceback(shop):
    result = call("show", shop[0] / "home", "spent")
    assert result.exit_code == 1
    assert "spent" in result.output
    assert "Traceback" not in result.output


def test_an_epoch_that_is_not_there_is_an_error_with_the_range(shop):
    result = call("show", shop[0] / "home", "spend", "--at", 99)
    assert result.exit_code == 1
    assert "99" in result.output
    assert "Traceback" not in result.output


def test_a_folder_that_is_no_home_is_an_error_without_a_traceback(tmp_path):
    result = call("status", tmp_path)
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_running_again_goes_on_where_it_stopped(shop):
    folder, _ = shop
    result = call("run", folder / "flow.py", "--home", folder / "home", "--available-now", "--json", "--remote", f"file://{folder}/remote")
    assert result.exit_code == 0, result.output
    assert sum(json.loads(line)["numInputRows"] for line in result.stdout.splitlines() if line.startswith("{")) == 0
    assert rows(folder, "spend")[0]["spent"] == 4.5
