"""More than one scheduler: two plain beats send twice as much and wake nobody twice; of two RedBeats one sends."""

from __future__ import annotations

import sys

import pytest

from tests.nodes.engine import ProcEngine
from tests.nodes.waiting import until

SENT = "Sending due task"


@pytest.fixture
def start_beat(tmp_path, office_env):
    """Return a function that starts a beat which ticks every second, with files of its own."""
    engine = ProcEngine(tmp_path)

    def start(name, *args):
        files = ("--pidfile=", f"--schedule={tmp_path / name}")
        command = [sys.executable, "-m", "celery", "--app=tests.recovery.quick", "beat", "--loglevel=INFO"]
        return engine.run([*command, *files, *args], name=name, env=office_env)

    yield start
    engine.close()


def sent(beat):
    return beat.logs().decode().count(SENT)


def test_two_plain_beats_wake_no_task_twice(board, unstarted, start_worker, start_beat):
    """C19 (b), REC-1.8, REC-3.4: two beats, twice the ticks, two sweeps at once; a run each for forty tasks."""
    tasks = [unstarted(f"T{number:02}") for number in range(40)]
    board.execute("UPDATE tasks SET created_at = now()")
    start_worker(concurrency=4, queues="recovery")
    beats = [start_beat(name) for name in ("one", "two")]
    until(lambda: board.count("runs") >= len(tasks), 60, "a run for each task")
    enough = [sent(beat) + 5 for beat in beats]
    until(lambda: all(sent(beat) >= least for beat, least in zip(beats, enough, strict=True)), 60, "five more ticks")
    assert sorted(run["task_id"] for run in board.runs()) == tasks
    assert board.count("wakes") == len(tasks)


def test_of_two_redbeats_one_sends_and_the_other_takes_over(start_beat, broker):
    """C19 (b), REC-3.4: the second is silent until the first is killed -9, and sends within its lock's time-out."""
    pytest.importorskip("redbeat", reason="the extra `redbeat` is not installed")
    one = start_beat("one", "--scheduler=redbeat.RedBeatScheduler")
    until(lambda: sent(one) >= 2, 30, "the first to send")
    two = start_beat("two", "--scheduler=redbeat.RedBeatScheduler")
    until(lambda: sent(one) >= 6, 30, "the first to go on")
    queued = broker.container.client.llen("recovery")
    assert (queued - sent(one) in (-1, 0, 1), sent(two)) == (True, 0)
    one.kill("SIGKILL")
    until(lambda: sent(two) >= 2, 5 + 2 + 5, "the second to take over")
