"""The examples of handlers: called as an execution calls them, and in workers that are stopped and killed."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import sys
import uuid
from dataclasses import replace

import psutil
import pytest

from examples import handler_python, handler_subprocess
from office_tasks import RunContext
from office_tasks.execution import orders
from office_tasks.execution.context import AgentFacts, RunFacts
from office_tasks.execution.execute import execute_next
from office_tasks.producers.creation import create_task
from tests.nodes.verbs import kill_child, wait_exit
from tests.nodes.waiting import until
from tests.support import T0, after

CHECKSUMS = "examples.handler_python:checksums"
SUBPROCESS = "examples.handler_subprocess:run"
LATER = {"days": 100_000}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    path = tmp_path / "files"
    path.mkdir()
    monkeypatch.setenv("OFFICE_EXAMPLE_DIRECTORY", str(path))
    return path


@pytest.fixture
def command(directory, monkeypatch):
    """Return a function that sets the command that is run for each run."""
    return lambda *words: monkeypatch.setenv("OFFICE_EXAMPLE_COMMAND", shlex.join(words))


@pytest.fixture
def context():
    facts = RunFacts(uuid.uuid4(), "checksums", {"files": ["a", "b"]}, None, 1, T0)
    return RunContext(facts, None, AgentFacts("ana", "acme", "", "worker"), None, 1, lambda: False)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def executed(engine, board, path):
    """Execute the next run and return its row."""
    over = execute_next(engine, path)
    assert over is not None
    return board.run(over.run.id)


class TestPython:
    """`handler_python.py`."""

    def test_it_computes_what_its_run_names(self, board, directory):
        (directory / "a").write_bytes(b"one")
        board.ask(reason="checksums", payload={"files": ["a"]})
        row = executed(board.engine, board, CHECKSUMS)
        assert (row["status"], row["result"]) == ("finished", {"attempt": 1, "sha256": {"a": sha256(b"one")}})
        assert {file.name for file in directory.iterdir()} == {"a", "a.sha256"}

    def test_a_file_that_is_not_there_is_looked_for_in_a_minute(self, board, directory, at):
        """REC-2.7: RetryAt, and the next attempt finds it."""
        board.ask(reason="checksums", payload={"files": ["late"]})
        row = executed(board.engine, board, CHECKSUMS)
        assert (row["status"], row["attempt"], row["error"]) == ("queued", 1, "RetryAt: not there yet: late")
        assert row["scheduled_retry_at"] is not None
        assert execute_next(board.engine, CHECKSUMS) is None
        (directory / "late").write_bytes(b"two")
        row = executed(at(**LATER), board, CHECKSUMS)
        assert (row["status"], row["result"]["attempt"]) == ("finished", 2)

    def test_a_second_start_passes_over_what_the_first_one_did(self, context, directory):
        """REC-2.4: at least once: the sum that stands there is taken, unless its file was changed since."""
        for name in "ab":
            (directory / name).write_bytes(b"one")
        (directory / "a.sha256").write_text("what the first attempt left\n")
        result = handler_python.checksums(replace(context, attempt=2))
        assert result["sha256"] == {"a": "what the first attempt left", "b": sha256(b"one")}
        changed = (directory / "a.sha256").stat().st_mtime_ns + 1
        os.utime(directory / "a", ns=(changed, changed))
        assert handler_python.checksums(context)["sha256"]["a"] == sha256(b"one")

    def test_it_stops_when_it_should(self, context, directory):
        """REC-2.10: between two files and within one."""
        for name in "ab":
            (directory / name).write_bytes(b"one")
        answers = iter([False, False, True])
        result = handler_python.checksums(replace(context, cancelled=lambda: next(answers)))
        assert list(result["sha256"]) == ["a"]
        answers = iter([False, False, True])
        (directory / "a").touch()
        (directory / "a.sha256").unlink()
        (directory / "a").write_bytes(b"x" * (handler_python.CHUNK_BYTES + 1))
        with pytest.raises(InterruptedError, match="within a"):
            handler_python.checksums(replace(context, cancelled=lambda: next(answers)))
        assert not (directory / "a.sha256").exists()

    def test_a_payload_names_no_file_elsewhere(self, context, directory):
        outside = replace(context, run=replace(context.run, payload={"files": ["../secret"]}))
        with pytest.raises(ValueError, match="not in the directory"):
            handler_python.checksums(outside)


class TestSubprocess:
    """`handler_subprocess.py`, in process."""

    def test_the_shipped_command_resumes_its_sessions_conversation(self, board, directory):
        """REC-2.5: two runs of one pair are two turns of one conversation, which is the session's."""
        create_task(board.engine, "c1", "acme", "one", task_id="T1", step_id="start", assignee_id="ana", instant=T0)
        board.ask(after(minutes=1), reason="task_comment", payload={"task_id": "T1"})
        rows = [executed(board.engine, board, SUBPROCESS) for _ in range(2)]
        (session_id,) = {row["session_id"] for row in rows}
        assert [row["result"] for row in rows] == [
            {"conversation": str(session_id), "turns": 1},
            {"conversation": str(session_id), "turns": 2},
        ]

    def test_a_second_start_of_one_run_is_no_second_turn(self, context, directory):
        once, again = (handler_subprocess.run(replace(context, attempt=attempt)) for attempt in (1, 2))
        assert once == again == {"conversation": str(context.run.id), "turns": 1}

    def test_ids_are_filled_in_and_facts_are_told(self, board, command):
        create_task(board.engine, "c1", "acme", "one", task_id="T1", step_id="start", assignee_id="ana", instant=T0)
        script = "import json, sys; print(json.dumps([sys.argv[1:], json.load(sys.stdin)]))"
        command(sys.executable, "-c", script, "--resume={session_id}", "{task_id}/{agent_id}", "{run_id}")
        row = executed(board.engine, board, SUBPROCESS)
        words, told = row["result"]
        assert words == [f"--resume={row['session_id']}", "T1/ana", str(row["id"])]
        assert (told["run"]["id"], told["task"]["title"], told["attempt"]) == (str(row["id"]), "one", 1)
        assert told["session"]["id"] == str(row["session_id"])
        assert told["session"]["is_new"] is True
        assert "cancelled" not in told

    @pytest.mark.parametrize(
        ("words", "error"),
        [
            (("sh", "-c", "echo no such model >&2; exit 3"), "CommandError: exit code 3: no such model"),
            (("sh", "-c", "kill -9 $$"), "CommandError: exit code -9:"),
            (("echo", "done"), "CommandError: it wrote no JSON but b'done\\n'"),
            (("no-such-program",), "CommandError: there is no program 'no-such-program'"),
        ],
    )
    def test_a_command_that_fails_fails_its_attempt(self, board, command, words, error):
        command(*words)
        board.ask()
        row = executed(board.engine, board, SUBPROCESS)
        assert (row["status"], row["attempt"], row["error"].strip()) == ("queued", 1, error)

    def test_a_large_run_passes_and_so_does_a_large_result(self, board, command):
        command(sys.executable, "-c", "import json, sys; print(json.dumps(json.load(sys.stdin)['run']['payload']))")
        payload = {"text": "x" * 200_000}
        board.ask(payload=payload)
        assert executed(board.engine, board, SUBPROCESS)["result"] == payload


# A command with a child of its own; it says who they are. It ignores SIGTERM, and so does its child, or it tidies up.
COMMAND = """
import json, os, signal, subprocess, sys, threading

def tidy_up(*_):
    open("{file}.tidy", "w").close()
    sys.exit()

signal.signal(signal.SIGTERM, signal.SIG_IGN if {stubborn} else tidy_up)
child = subprocess.Popen(["sleep", "300"])
with open("{file}.new", "w") as file:
    json.dump([os.getpid(), child.pid], file)
os.rename("{file}.new", "{file}")
threading.Event().wait()
"""


@pytest.fixture
def at_work(board, start_worker, caller, tmp_path):
    """Return a function that has a worker execute a command that goes on; it returns both and the command's pids."""

    def begin(*, stubborn=False, limit="", **options):
        said = tmp_path / "pids"
        script = COMMAND.format(stubborn=stubborn, file=said)
        words = shlex.join([sys.executable, "-c", script])
        env = {"OFFICE_RUN_HANDLER": SUBPROCESS, "OFFICE_EXAMPLE_COMMAND": words, "REMAP_SIGTERM": "SIGQUIT"}
        env |= {"OFFICE_RUN_TIME_LIMIT": limit} if limit else {}
        worker = start_worker(queues="admission,execution", env=env, **options)
        caller.ask("queue_run", agent_profile_id="ana", reason="manual_resume")
        until(said.exists, 20, "the command runs")
        (run,) = board.runs()
        return worker, run, json.loads(said.read_text())

    return begin


def ended(pids):
    until(lambda: not any(alive(pid) for pid in pids), 20, f"the end of {pids}")


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("pool", ["prefork", "threads"])
@pytest.mark.parametrize("stubborn", [False, True], ids=["polite", "stubborn"])
def test_cancelling_ends_the_command_and_its_children(board, at_work, tmp_path, pool, stubborn):
    """REC-2.10: within the grace of 30 s, and the run is cancelled. A command that heeds SIGTERM can tidy up."""
    _, run, pids = at_work(stubborn=stubborn, pool=pool)
    orders.cancel(board.engine, str(run["id"]))
    until(lambda: board.run(run["id"])["status"] == "cancelled", 20, "the run cancelled")
    ended(pids)
    row = board.run(run["id"])
    assert (row["cancel_reason"], row["error"]) == ("operator", "CommandError: stopped: the run was to stop")
    assert (tmp_path / "pids.tidy").exists() is not stubborn


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_command_whose_time_is_up_ends(board, at_work, pool):
    """REC-2.9: interrupted in a pool of processes, told by `cancelled()` in one of threads; tried again later."""
    _, run, pids = at_work(limit="3", stubborn=True, pool=pool)
    until(lambda: board.run(run["id"])["status"] == "queued", 20, "the attempt failed")
    ended(pids)
    row = board.run(run["id"])
    assert row["attempt"] == 1
    assert "OFFICE_RUN_TIME_LIMIT, 3 s" in row["error"] or "was to stop" in row["error"]


@pytest.mark.parametrize("stubborn", [False, True], ids=["polite", "stubborn"])
def test_a_stopped_worker_leaves_no_command_and_gives_its_run_back(board, at_work, tmp_path, stubborn):
    """REC-2.8: the run is for the next worker, at once."""
    worker, run, pids = at_work(stubborn=stubborn)
    worker.kill("SIGTERM")
    wait_exit(worker)
    ended(pids)
    row = board.run(run["id"])
    assert (row["status"], row["attempt"], row["error"]) == ("queued", 1, "its worker was stopped")
    assert (tmp_path / "pids.tidy").exists() is not stubborn


def test_a_killed_worker_process_leaves_no_command(board, at_work):
    """REC-2.8: nobody could end it, so the kernel did; the run is the rescue's."""
    worker, run, (pid, child) = at_work(stubborn=True, concurrency=1)
    kill_child(worker)
    ended([pid])
    os.kill(child, signal.SIGKILL)
    ended([child])
    assert board.run(run["id"])["status"] == "claimed"
