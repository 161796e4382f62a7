"""The feeder of the demo: whole files only, and the events of the house in order."""

from __future__ import annotations

from nosync.demo.auction import House
from nosync.demo.feeder import STREAMS, Feeder


def lines_in(folder):
    return [line for path in sorted(folder.iterdir()) for line in path.read_text(encoding="utf-8").splitlines()]


def test_files_hold_the_events_of_the_house_in_order(tmp_path):
    feeder = Feeder(tmp_path, seed=3, events_per_file=200, pause_seconds=60)
    for _ in range(3):
        feeder.write()
    assert {stream: lines_in(tmp_path / stream) for stream in STREAMS} == House(3).events(600)
    assert feeder.written == 600


def test_no_hidden_file_is_left_after_writing(tmp_path):
    feeder = Feeder(tmp_path, seed=3, events_per_file=50, pause_seconds=60)
    feeder.write()
    assert not list(tmp_path.rglob(".*.json"))


def test_stopping_ends_the_thread_between_two_files(tmp_path):
    feeder = Feeder(tmp_path, seed=3, events_per_file=50, pause_seconds=0.0)
    feeder.start()
    while feeder.written < 100:
        pass
    feeder.stop()
    assert sum(len(lines_in(tmp_path / stream)) for stream in STREAMS) == feeder.written
