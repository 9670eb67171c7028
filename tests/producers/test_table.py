"""The table of producers, held against the code and against what each of them writes."""

from __future__ import annotations

import ast

import pytest

import recovery.tasks  # noqa: F401 - registers its Celery tasks
from office_tasks.producers.producer import Producer
from office_tasks.tasks import app
from tests.admission import source
from tests.admission.telling import KEYLESS, counted, listening
from tests.producers.table import TABLE

# Who sits where, and whose session ends: nobody is woken by it (SES-3.3).
OF_SEATS = {
    "office.add_participant", "office.remove_participant", "office.claim_seat", "office.terminate_session",
    "office.delete_agent",
}  # fmt: skip
# What hands wakes on: the pipeline and its numbering, and the way back from a row that was written before.
PLUMBING = {"reactions.owe", "reactions._runner", "reactions._over", "after.from_row"}
BUILDS = {"wake", "Ask", "_runner", "_over"}
NAMES_ITS_PRODUCER = {"wake", "owe", "Changed", "event", "Event", "_insert", "_asks", "_hear", "withheld"}
# A producer that its caller named goes by one of these; each is typed `Producer`, which mypy sees to.
HANDED_ON = {"producer", "changed.producer", "said.producer"}
# The producers that are no Celery task: what an operator orders on the command line.
COMMANDS = {Producer.MANUAL_RESUME}
# The Celery tasks that ask for no wake of their own.
WAKES_NOBODY = {
    "office.settle_mutation", "office.pause_workspace", "office.resume_workspace",
    "recovery.relay_owed", "recovery.dispatch_queued_runs", "recovery.purge_history",
}  # fmt: skip
# Those that are not named after their producer; a run may fail where it is executed, or where it is found dead.
BY_ANOTHER_NAME = {
    "recovery.recover_unstarted_tasks": Producer.RECOVERY_SWEEP,
    "recovery.rescue_stale_claims": Producer.FAILED_RUN,
    "office.execute_run": Producer.FAILED_RUN,
}


def functions(*parts):
    """Yield each function that stands in a module of ours as `module.function` and its tree."""
    for where, tree in source.modules(*parts):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield f"{where.rsplit('/', 1)[-1].removesuffix('.py')}.{node.name}", node


def calls(tree, names):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and source._name(node.func) in names]


def builders():
    return {name for name, tree in functions("office_tasks", "recovery") if calls(tree, BUILDS)} - PLUMBING


def test_every_producer_has_a_row():
    """PRO-1.1, PRO-3.1: a member of `Producer` that is missing from the table fails here."""
    assert {row.producer for row in TABLE} == set(Producer)


def test_every_celery_task_is_a_producer_or_wakes_nobody():
    """PRO-1.1, PRO-3.1: a new task of ours that wakes somebody has a member, and so a row."""
    names = {name for name in app.tasks if name.startswith(("office.", "recovery."))} - OF_SEATS
    others = set(Producer) - set(BY_ANOTHER_NAME.values()) - COMMANDS
    assert names - WAKES_NOBODY - set(BY_ANOTHER_NAME) == {f"office.{one}" for one in others}


def test_every_function_that_builds_wakes_has_a_row():
    """PRO-1.1, PRO-3.1: found in the code; `in_session.enqueue` is `queue_run` in the caller's transaction."""
    assert builders() - {"in_session.enqueue"} == {row.builder for row in TABLE}


def _unnamed(tree):
    """Yield each call that makes, owes or announces a wake without naming one of the producers."""
    for call in calls(tree, NAMES_ITS_PRODUCER):
        given = [ast.unparse(part) for part in [*call.args, *(keyword.value for keyword in call.keywords)]]
        members = {f"Producer.{one.name}" for one in Producer}
        if not (members | HANDED_ON) & set(given):
            yield ast.unparse(call)


def test_every_wake_names_a_producer_of_the_enumeration():
    """PRO-1.1: no call invents a producer, in text or otherwise; a row's own wake is taken back as it was owed."""
    parts = ("office_tasks/producers", "office_tasks/execution", "office_tasks/in_session.py", "office_tasks/tasks.py",
             "recovery")  # fmt: skip
    found = [
        (name, call)
        for name, tree in functions(*parts)
        for call in _unnamed(tree)
        if name != "after.from_row" and not call.startswith(("Event(", "inbound.Event(", "threading.Event(", "_asks("))
    ]
    assert found == []
    strays = {node.attr for _, tree in functions(*parts) for node in ast.walk(tree)
              if isinstance(node, ast.Attribute) and source._name(node.value) == "Producer"}  # fmt: skip
    assert strays == set(Producer.__members__), "every member is used by the code, and no other"


@pytest.mark.parametrize(
    "call", ['wake(producer="new", key=None)', "owe(mutation_id, 'assign_task', asks)", "Changed(who, task)"]
)
def test_a_wake_of_an_unlisted_producer_would_be_seen(call):
    """PRO-1.1: the scan finds a producer that is given as text."""
    assert list(_unnamed(ast.parse(call)))


@pytest.mark.parametrize("row", [row for row in TABLE if row.varies is not None], ids=str)
def test_a_key_tells_two_occurrences_apart(acts, row):
    """PRO-1.1, PRO-1.2: both are queued; of their keys one segment varies, the one that is the generation."""
    one, other = (did.wake(row.reason, keyless=False) for did in row.occurrences(acts))
    parts = [one["key"].split(":"), other["key"].split(":")]
    assert [n for n, pair in enumerate(zip(*parts, strict=True)) if len(set(pair)) == 2] == [row.varies]
    assert (one["keyless_cause"], one["keyless_detail"]) == (None, None)
    assert [wake["producer"] for wake in (one, other)] == [row.producer] * 2
    assert (one["outcome"], other["outcome"]) == ("queued", "queued")


@pytest.mark.parametrize("row", [row for row in TABLE if row.keyless], ids=str)
def test_a_keyless_wake_says_why(acts, row):
    """PRO-1.3, PRO-4: no key on the row or the run, its cause and detail; counted once, and logged when unresolved."""
    with listening() as told:
        wakes = [did.wake(row.reason, keyless=True) for did in row.occurrences(acts)]
    assert [(wake["key"], wake["keyless_cause"], wake["keyless_detail"]) for wake in wakes] == [
        (None, *row.keyless)
    ] * 2
    assert [wake["producer"] for wake in wakes] == [row.producer] * 2
    runs = {wake["run_id"]: acts.board.run(wake["run_id"])["idempotency_key"] for wake in wakes}
    assert row.producer is Producer.ONBOARD_TASK or set(runs.values()) == {None}
    cause, detail = row.keyless
    assert told.moved[counted(KEYLESS, reason=row.reason, cause=cause)] == 2
    said = [(entry["log_level"], entry["detail"]) for entry in told.events("run_enqueued_keyless")
            if entry["reason"] == row.reason]  # fmt: skip
    assert said == ([("info", detail)] * 2 if cause == "unresolved" else [])


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_only_an_assignment_names_an_agent_as_its_actor(acts, row):
    """PRO-3.1: whatever each producer writes, driven by an agent where it can be: in every other one, no actor."""
    wakes = [wake for did in row.occurrences(acts) for wake in did.wakes]
    assert {wake["producer"] for wake in wakes} == {row.producer}
    named = {(wake["payload"].get("actor_type"), wake["payload"].get("actor_id")) for wake in wakes}
    named |= {(wake["actor_type"], wake["actor_id"]) for wake in wakes}
    named |= {(run["payload"].get("actor_type"), run["payload"].get("actor_id"))
              for run in acts.board.runs() if run["id"] in {wake["run_id"] for wake in wakes}}  # fmt: skip
    assert named == ({("agent", "bob")} if row.producer is Producer.ASSIGN_TASK else {(None, None)})


def test_nothing_else_writes_an_actor():
    """PRO-3.1: the fields of the actor are written in one place, and one producer asks for them."""
    parts = ("office_tasks/producers", "office_tasks/execution", "office_tasks/in_session.py", "recovery")
    assert {name for name, tree in functions(*parts) if "actor_type" in set(source.strings(tree))} == {
        "mutation.payload",
        "mutation._columns",
    }
    assert {name for name, tree in functions(*parts) if any(
        isinstance(call.func, ast.Attribute) and ast.unparse(call.func) != "validation.payload"
        for call in calls(tree, {"payload"})
    )} == {"assignments._change"}  # fmt: skip
