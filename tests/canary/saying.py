"""Everything that a caller can send with a canary in it, by what becomes of it."""

from __future__ import annotations

import pickle
from typing import Any

from celery import xstarmap

from tests.canary.hidden import WRITTEN

PAYLOAD = {"task_id": "T1", "comment": f"{WRITTEN} said", "actor_type": "agent", "actor_id": "bob", WRITTEN: [WRITTEN]}
PROSE = f"{WRITTEN} in words"

# A trigger of the database's own that fails in each way that repeats what it was given.
TRIGGER = """
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        CASE NEW.reason
        WHEN 'raises' THEN RAISE EXCEPTION 'refused: %', NEW.payload USING DETAIL = NEW.payload::text;
        WHEN 'casts' THEN PERFORM (NEW.payload->>'comment')::integer;
        WHEN 'dates' THEN PERFORM (NEW.payload->>'comment')::date;
        WHEN 'null' THEN NEW.requested_at = NULL;
        WHEN 'is cancelled' THEN PERFORM pg_cancel_backend(pg_backend_pid()), pg_sleep(9);
        WHEN 'lacks' THEN RAISE EXCEPTION 'no such %', NEW.payload USING ERRCODE = '42501';
        ELSE NULL;
        END CASE;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fail BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION fail();
    ALTER TABLE runs ADD CONSTRAINT checked CHECK (reason <> 'is checked')"""
DATABASE_ERRORS = ("raises", "casts", "dates", "null", "is cancelled", "lacks", "is checked")

# (task, positional arguments, arguments by name); all of them are answered.
CALLS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("create_task", ["acme", f"{PROSE} title"], {"task_id": "T1", "step_id": "start", "assignee_id": "ana"}),
    ("onboard_task", ["acme", "bob", f"{PROSE} title"], {}),
    ("queue_run", ["ana", "manual_resume", PAYLOAD], {}),
    ("queue_run", ["ana", "manual_resume"], {"payload": PAYLOAD}),
    ("queue_run", ["nobody", "manual_resume", PAYLOAD], {}),
    ("queue_run", ["sam", "manual_resume", PAYLOAD], {}),
    ("spawn_run", [None, "ana", "agent_error", PAYLOAD], {}),
    ("add_comment", ["T1", "c1", f"{PROSE} body @bob", "user", "me"], {}),
    ("set_task_status", ["T1", "in_review"], {"comment_id": "c2", "comment_body": f"{PROSE} body"}),
    # Arguments in each other's places, too many of them, and by names that nobody knows.
    ("add_comment", ["T1", "c3", "user", f"{PROSE} body", "me"], {}),
    ("set_task_status", ["T1", PROSE], {}),
    ("add_participant", ["T1", "ana", PROSE], {}),
    ("terminate_session", ["T1", "ana", PROSE], {}),
    ("onboard_task", ["acme", f"{PROSE} title", "bob"], {}),
    ("assign_task", [f"{PROSE} title", "ana"], {}),
    ("settle_mutation", [PROSE], {}),
    ("create_task", [PROSE, "acme"], {}),
    ("enter_step", ["T1", PROSE], {}),
    ("resume_workspace", [PROSE], {}),
    ("queue_run", [PROSE, "manual_resume", PAYLOAD], {}),
    ("queue_run", ["ana"], {WRITTEN: WRITTEN}),
    ("queue_run", ["ana", "manual_resume", PAYLOAD, "k", PROSE], {}),
    ("queue_run", ["ana", "manual_resume"], {"agent_profile_id": PROSE}),
    ("queue_run", ["ana", "manual_resume"], {"payload": PAYLOAD, WRITTEN: {WRITTEN: WRITTEN}}),
    # What is not acceptable (ADM-8.2).
    ("queue_run", ["ana", "manual_resume", {WRITTEN: "\0"}], {}),
    ("queue_run", ["ana", "manual_resume", PAYLOAD, f"{PROSE}\0"], {}),
    ("queue_run", [[WRITTEN], {WRITTEN: 1}, PAYLOAD, [WRITTEN]], {}),
    ("create_task", ["acme", {WRITTEN: WRITTEN}], {}),
    ("add_comment", ["T1", "c4", [WRITTEN], "user", "me"], {}),
    ("add_comment", ["T1", "c5", f"{WRITTEN}\0", "user", "me"], {}),
    ("task_created", [{WRITTEN: 1}], {}),
    ("task_updated", ["T1", "ana", PROSE], {}),
    ("pause_workspace", ["acme", [WRITTEN]], {}),
    ("pause_workspace", ["acme", "why", PROSE], {}),
    *(("queue_run", ["bob", reason, PAYLOAD], {}) for reason in DATABASE_ERRORS),
]

# Taken as they are, for ids, keys and reasons are opaque text: their callers get them back, and nobody else.
TAKEN: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("create_task", ["acme", "T0"], {"task_id": "T0", "step_id": "start", "assignee_id": "ana"}),
    ("add_comment", ["T0", f"{PROSE} body @bob", "c6", "user", "me"], {}),
    ("add_comment", ["T0", "c7", "body @bob", "user", PROSE], {}),
    ("set_task_status", ["T0", "in_progress"], {"comment_id": f"{PROSE} 2", "comment_body": "body"}),
    ("enter_step", ["T0", "start", PROSE], {}),
    ("create_task", ["acme", "T2"], {"task_id": f"{PROSE} title", "step_id": "start", "assignee_id": "ana"}),
    ("assign_task", [f"{PROSE} title", "bob"], {}),
    ("add_participant", [f"{PROSE} title", "ana", "reviewer"], {}),
    ("set_task_status", [f"{PROSE} title", "in_review"], {}),
    ("terminate_session", [f"{PROSE} title", "ana", "task_reassigned"], {}),
    ("queue_run", ["bob", f"{PROSE} reason", {}], {}),
    ("queue_run", ["bob", "manual_resume", {}, f"{PROSE} key"], {}),
    ("queue_run", ["bob", "manual_resume", {}, f"{PROSE} key"], {}),
    ("spawn_run", [PROSE, "bob", "agent_error", {}, f"{PROSE} key"], {}),
    ("task_created", [f"{PROSE} 3"], {}),
]
# Refused with a sentence about what was taken before.
REFUSED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("add_comment", ["T0", f"{PROSE} body @bob", "another", "user", "me"], {}),
    ("create_task", ["acme", "T2"], {"task_id": f"{PROSE} title"}),
    ("claim_seat", [f"{PROSE} title", "reviewer", "ana", "ana"], {}),
    ("assign_task", [f"{PROSE} title", "bob", PROSE], {}),
]

# (body, headers over those of `queue_run`, content type); those that leave an id are answered.
MESSAGES: list[tuple[Any, dict[str, Any], str]] = [
    *((body, {}, "application/json") for body in ({WRITTEN: 1}, f'"{WRITTEN}"', "{" + WRITTEN, [[WRITTEN], {}, [1]])),
    (b"\xff" + WRITTEN.encode(), {}, "application/json"),
    ([["ana", "r", PAYLOAD], {}, {"callbacks": [PAYLOAD, WRITTEN]}], {}, "application/json"),
    ([["ana", "r", PAYLOAD], {}, {"chord": [WRITTEN]}], {}, "application/json"),
    ([["ana", "r", PAYLOAD], {}, {}], {"argsrepr": WRITTEN, "kwargsrepr": WRITTEN}, "application/json"),
    ([["ana", "r", PAYLOAD], {}, {}], {WRITTEN: WRITTEN}, "application/json"),
    *(
        ([["ana", "r", PAYLOAD], {}, {}], headers, "application/json")
        for headers in ({"eta": PROSE}, {"expires": PROSE}, {"retries": PROSE}, {"timelimit": [PROSE, PROSE]},
                        {"compression": PROSE}, {"stamps": PROSE}, {"headers": PROSE}, {"office_retries": PROSE},
                        {"shadow": PROSE})
    ),
    ([[WRITTEN], {WRITTEN: WRITTEN}, {}], {"task": "office.zork"}, "application/json"),
    (pickle.dumps([["ana", "r", PAYLOAD], {}, {}]), {}, "application/x-python-serialize"),
    ([["ana", "r", PAYLOAD], {}, {}], {}, "application/x-yaml"),
    ([["ana", "r", PAYLOAD], {}, {}], {}, f"application/{WRITTEN}"),
]  # fmt: skip

# Those without an id: nobody waits for an answer.
UNANSWERED = [{"task": None}, {"task": [WRITTEN]}, {"id": f"{WRITTEN}\0"}, {"id": [WRITTEN]}]


def say_what_is_taken(caller) -> list[str]:
    """Send prose where an id belongs, one after the other: what is accepted, then what is not; return the ids."""
    sent = []
    for name, args, kwargs in TAKEN + REFUSED:
        sent.append(caller.send(name, *args, **kwargs))
        answer = sent[-1].get(timeout=60, propagate=False)
        assert isinstance(answer, Exception) is ((name, args, kwargs) in REFUSED), (name, args, answer)
    many = xstarmap(caller.app.signature("office.queue_run"), [["bob", "many", {}, f"{PROSE} many"]], app=caller.app)
    sent.append(many.apply_async())
    assert [one["key"] for one in sent[-1].get(timeout=60)] == [f"{PROSE} many"]
    return [each.id for each in sent]


def say_everything(caller) -> list[str]:
    """Send all of it and wait for every answer; return the ids."""
    caller.board.execute(TRIGGER)
    sent = [caller.send(name, *args, **kwargs) for name, args, kwargs in CALLS[:1]]
    sent[0].get(timeout=60)
    sent += [caller.send(name, *args, **kwargs) for name, args, kwargs in CALLS[1:]]
    sent += [caller.app.send_task(name, [WRITTEN], {WRITTEN: WRITTEN}) for name in ("zork", "celery.group")]
    sent += [caller.push(body, headers=headers, content_type=kind) for body, headers, kind in MESSAGES]
    for headers in UNANSWERED:
        caller.push([["ana", "r", PAYLOAD], {}, {}], headers=headers)
    for each in sent:
        each.get(timeout=90, propagate=False)
    # Last: it refuses all that comes after it.
    caller.send("pause_workspace", "acme", f"{PROSE} is why").get(timeout=60)
    caller.send("queue_run", "ana", "manual_resume", PAYLOAD).get(timeout=60, propagate=False)
    return [each.id for each in sent]
