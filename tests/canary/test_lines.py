"""The lines of a log: JSON or colours, from the very first one, each with the Celery task that it is of (OPS-1.3)."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from types import SimpleNamespace

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from db.engine import make_engine
from office_tasks import task_created
from office_tasks.devstack.ports import pick
from office_tasks.execution import keeper
from office_tasks.logs import named
from tests.canary import hidden
from tests.canary.hidden import WRITTEN, leaks
from tests.integration.faults import setting
from tests.nodes.engine import ROOT
from tests.nodes.verbs import pool_pids, wait_for_log
from tests.nodes.waiting import until
from tests.nodes.worker import inherited

QUICK = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "5", "OFFICE_SOFT_TIME_LIMIT": "4"}
NOISY = {"OFFICE_RUN_HANDLER": "tests.canary.handlers:handle"}
NAMED = {"celery_task_id", "celery_task_name"}


class Process:
    """A process whose standard output and error are told apart."""

    def __init__(self, words, env, tmp_path) -> None:
        self._out, self._err = tmp_path / "out", tmp_path / "err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.popen = subprocess.Popen(words, cwd=ROOT, env=env, stdout=out, stderr=err)

    @property
    def lines(self) -> list[str]:
        return self._err.read_text().splitlines()

    def says(self, what: str) -> None:
        until(lambda: any(what in line for line in self.lines), 60, what)

    def stop(self) -> None:
        self.popen.terminate()
        self.popen.wait(timeout=60)


@pytest.fixture
def start(office_env, tmp_path):
    """Start a process; it is ended with the test."""
    started = []

    def begin(*words: str, **settings: str) -> Process:
        env = {**inherited(), **office_env, "OFFICE_LOG_LEVEL": "DEBUG", **settings}
        started.append(Process(hidden.program(*words), env, tmp_path))
        return started[-1]

    yield begin
    for process in started:
        process.popen.kill()
        process.popen.wait(timeout=60)


def parsed(lines):
    """Return what the lines say; each must be JSON, and say when it was written and how much it matters."""
    said = [json.loads(line) for line in lines]
    assert [one for one in said if not {"event", "level", "timestamp"} <= one.keys()] == []
    return said


@pytest.mark.parametrize(
    ("command", "ready"),
    [
        ("celery worker -c 1", "ready."),
        ("celery worker -c 1 -l DEBUG", "ready."),
        # Asleep: Celery's beat that is told to end while it sends may find its own file closed, and dies of that.
        ("celery beat --pidfile=", "Waking up in"),
        # Not before it watches: Flower that is told to end while it starts to may never do so.
        ("celery flower --port=0", "Inspect method"),
    ],
)
def test_every_line_is_json_from_the_first_to_the_last(start, tmp_path, command, ready):
    """OPS-1.3: of the worker, of beat, of Flower; what Python warns of at their start is a line of the log too."""
    schedule = [f"--schedule={tmp_path / 'schedule'}"] if "beat" in command else []
    process = start(*command.split(), *schedule)
    process.says(ready)
    process.stop()
    said = parsed(process.lines)
    if "worker" in command and os.geteuid() == 0:
        assert "SecurityWarning" in said[0]["event"]


def test_every_line_of_a_celery_task_names_it(start, caller, arm):
    """OPS-1.3: received, done, refused, retried, too late, killed, ours and Celery's, the handler's and its libraries';
    warnings and traces within the line."""
    pause = arm("pause")
    points = setting(pause.at("before_commit"))
    process = start("celery", "worker", "-c", "1", "-Q", "admission,execution", **QUICK, **NOISY, **points)
    process.says("ready.")
    caller.board.execute("ALTER TABLE runs ADD CONSTRAINT checked CHECK (reason <> 'is checked')")
    done = caller.send("queue_run", "ana", "r", {"do": "log_it", "text": "noise"})
    assert done.get(timeout=60)["outcome"] == "queued"
    process.says("run_finished")
    wrong = [caller.send("queue_run", *args) for args in (("ana",), ("nobody", "r"), ("ana", "is checked"))]
    assert [caller.error_of(each) for each in wrong]
    pause.always()
    late = caller.send("create_task", "acme", "Paint", task_id="T1")
    process.says("Soft time limit")
    process.says("retry: Retry in")
    pause.off()
    assert late.get(timeout=60)["task_id"] == "T1"
    expired = caller.app.send_task("office.queue_run", ["ana", "r"], expires=-1)
    process.says("Discarding revoked task")
    process.stop()
    said = parsed(process.lines)
    asked = [done, *wrong, late, expired]
    for one in said:
        # Where a line speaks of a message, or comes from a handler, it says of which in fields of its own.
        if any(each.id in one["event"] for each in asked) or one["event"].startswith(("noise", "run_")):
            assert one.keys() >= NAMED, one
    by_id = {each.id: [one for one in said if one.get("celery_task_id") == each.id] for each in asked}
    assert {each.id: {one["celery_task_name"] for one in by_id[each.id]} for each in asked} == {
        **{each.id: {"office.queue_run"} for each in (done, *wrong, expired)},
        late.id: {"office.create_task"},
    }
    noise = [one for one in said if "noise" in one["event"]]
    assert {one["celery_task_name"] for one in noise} == {"office.execute_run"}
    assert [one["level"] for one in noise] == ["info", "info", "warning", "error"]
    assert "Traceback" in noise[-1]["exception"]
    assert any("DatabaseError" in one["event"] and "Traceback" in one["exception"] for one in by_id[wrong[2].id])
    assert not any("exception" in one for each in wrong[:2] for one in by_id[each.id])


@pytest.mark.office_worker(concurrency=1, env={**QUICK, "OFFICE_LOG_LEVEL": "DEBUG"})
def test_a_hard_time_limit_names_its_task(worker, caller):
    """OPS-1.3: what the main process says of a child that it killed."""
    (child,) = pool_pids(worker)
    with caller.board.engine.begin() as connection:
        connection.exec_driver_sql("LOCK TABLE wakes IN ACCESS EXCLUSIVE MODE")
        late = caller.send("queue_run", "ana", "r")
        inspect = caller.app.control.inspect([worker.hostname()], timeout=1)
        until(lambda: any(one["time_start"] for one in (inspect.active() or {}).get(worker.hostname(), [])), what="it")
        assert worker.container.exec_run(f"python -c 'import os; os.kill({child}, 19)'")[0] == 0
        wait_for_log(worker, "Hard time limit")
    said = [json.loads(line) for line in worker.logs().splitlines() if line.startswith("{")]
    [line] = [one for one in said if "Hard time limit" in one["event"]]
    assert (line["celery_task_id"], line["celery_task_name"]) == (late.id, "office.queue_run")


def terminal(words, env, until_said):
    """Return what a process says at a terminal of its own, until it has said something."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(words, cwd=ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while until_said.encode() not in said:
                said += os.read(ours, 4096)
        finally:
            process.kill()
            os.close(ours)
    return said.decode()


COLOURED = re.compile(r"\x1b\[\d+m")


def test_at_a_terminal_there_are_colours_and_no_values(office_env, caller):
    """OPS-1.3: ours and the standard library's lines; a trace shows no local variables, which hold what was sent."""
    caller.board.execute("ALTER TABLE runs ADD CONSTRAINT checked CHECK (reason <> 'is checked')")
    caller.send("queue_run", "ana", "is checked", {"text": WRITTEN})
    env = {**inherited(), **office_env, "TERM": "xterm"}
    said = terminal(hidden.program("celery", "worker", "-c", "1"), env, "DatabaseError: 23514")
    assert leaks(said) == []
    lines = [line for line in said.splitlines() if "raised unexpected" in line or " ready." in line]
    assert len(lines) == 2
    assert all(COLOURED.search(line) for line in lines)
    assert "Traceback (most recent call last)" in said
    assert '{"' not in said.partition("ready.")[2]


def test_a_call_in_process_has_a_name_and_no_id(office):
    """OPS-1.3: no line says that an id is None; a plain call has no message that it could be the id of."""
    with capture_logs(processors=[merge_contextvars]) as logs:
        task_created("T9")
    assert [line["event"] for line in logs] == ["wake_withheld"]
    assert NAMED & set(logs[0]) == {"celery_task_name"}


def test_what_keeps_a_lease_names_its_task_too(monkeypatch):
    """OPS-1.3: a line of the thread that renews a lease belongs to the Celery task that executes the run."""
    monkeypatch.setattr(keeper, "RENEWAL_SECONDS", 0.01)
    nobody = make_engine(f"postgresql+psycopg://office:{hidden.DATABASE}@127.0.0.1:{pick()}/office")
    run = SimpleNamespace(id="r1", lease_token="t1")
    with (
        capture_logs(processors=[merge_contextvars]) as logs,
        named("m1", "office.execute_run"),
        keeper.Keeper(nobody, run, None, give_up=lambda: None),
    ):
        until(lambda: logs, what="a line")
    assert {"event": "lease_not_read", "celery_task_id": "m1", "celery_task_name": "office.execute_run"}.items() <= (
        logs[0].items()
    )
    assert leaks(logs) == []
