"""What may be shown of a message's arguments: every Celery task has its row, and nothing that was written shows."""

from __future__ import annotations

import ast
import inspect

import pytest
from celery.app.utils import filter_hidden_settings

from office_tasks import app
from office_tasks.arguments import ARGUMENTS, reported

CANARY = "canary-7f3a in words"
WRITTEN = {"payload", "title", "body", "comment_body"}

app.loader.import_default_modules()
# Other apps of this process share theirs with every app.
OURS = {name: task for name, task in app.tasks.items() if name.startswith(("office.", "recovery."))}


def test_every_task_has_its_row_and_no_other_has():
    assert set(ARGUMENTS) == set(OURS)


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_row_names_the_parameters_in_their_order_and_hides_what_is_written(name):
    row = ARGUMENTS[name].split()
    assert [each.removesuffix("*") for each in row] == list(inspect.signature(OURS[name].run).parameters)
    assert {each for each in row if each.removesuffix("*") in WRITTEN} == {f"{each}*" for each in WRITTEN} & set(row)


def test_ids_and_reasons_are_shown_and_of_a_payload_its_size():
    shown = reported("office.queue_run", ("ana", "manual_resume", {"comment": CANARY}), {"idempotency_key": "k:1"})
    assert shown == ("('ana', 'manual_resume', '<payload, 35 bytes>')", "{'idempotency_key': 'k:1'}")


@pytest.mark.parametrize(
    ("task", "args", "kwargs", "shown"),
    [
        ("office.assign_task", ["T1", ""], {}, ("('T1', '')", "{}")),
        ("office.queue_run", ["ana", "r", None], None, ("('ana', 'r', None)", "{}")),
        (
            "office.assign_task",
            [CANARY, {"a": CANARY}],
            {},
            ("('<task_id, 20 bytes>', '<assignee_id, 29 bytes>')", "{}"),
        ),
        ("office.assign_task", ["x" * 256], {}, ("('<task_id, 256 bytes>',)", "{}")),
        ("office.assign_task", ["T1", "a", "b", CANARY, 1], {}, ("('T1', 'a', 'b', '<2 unknown, 27 bytes>')", "{}")),
        ("office.assign_task", [], {CANARY: CANARY}, ("()", "{'?': '<1 unknown, 48 bytes>'}")),
        ("office.enter_step", ["T1", "s", 7], {}, ("('T1', 's', 7)", "{}")),
        ("office.enter_step", ["T1", "s", 10**5000], {}, ("('T1', 's', '<step_transition_id, no JSON>')", "{}")),
        ("office.pause_workspace", ["acme"], {"interrupt": True}, ("('acme',)", "{'interrupt': True}")),
        ("zork", [CANARY], {"a": CANARY}, ("('<1 unknown, 24 bytes>',)", "{'?': '<1 unknown, 29 bytes>'}")),
        ("zork", CANARY, CANARY, ("('<1 unknown, 24 bytes>',)", "{'?': '<1 unknown, 28 bytes>'}")),
        ("office.add_comment", ["T1", "c", "\ud800"], {}, ("('T1', 'c', '<body, 3 bytes>')", "{}")),
        ("office.queue_run", ["ana", "r", {1, 2}], {}, ("('ana', 'r', '<payload, 8 bytes>')", "{}")),
    ],
)
def test_nothing_else_is_shown(task, args, kwargs, shown):
    assert reported(task, args, kwargs) == shown
    assert [type(ast.literal_eval(each)) for each in shown] == [tuple, dict]


def test_what_is_nested_too_deeply_has_no_size():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert reported("office.queue_run", ["ana", "r", nested], {})[0] == "('ana', 'r', '<payload, no JSON>')"
    while nested:  # freed a level at a time: Python would do it in one recursion
        nested = nested.pop()


@pytest.fixture
def sent(monkeypatch):
    """What would go to the broker: the message's headers and its task-sent event."""
    messages = []
    monkeypatch.setattr(app.backend, "on_task_call", lambda *_: None)
    monkeypatch.setattr(app.amqp, "send_task_message", lambda _producer, _name, message, **_: messages.append(message))
    return messages


@pytest.mark.parametrize("by", ["delay", "apply_async", "send_task", "signature"])
def test_a_sender_says_no_more_than_a_worker(office, sent, by):
    queue_run = app.tasks["office.queue_run"]
    args = ["ana", "manual_resume", {"comment": CANARY}]
    {
        "delay": lambda: queue_run.delay(*args),
        "apply_async": lambda: queue_run.apply_async(args, argsrepr=CANARY, kwargsrepr=CANARY),
        "send_task": lambda: app.send_task(queue_run.name, args),
        "signature": lambda: queue_run.s(*args).apply_async(),
    }[by]()
    (message,) = sent
    assert message.headers["argsrepr"] == "('ana', 'manual_resume', '<payload, 35 bytes>')"
    assert message.headers["kwargsrepr"] == "{}"
    assert CANARY not in repr((message.headers, message.sent_event))


def test_the_configuration_that_a_worker_tells_holds_no_password():
    told = filter_hidden_settings({"redbeat_redis_url": "redis://:canary@localhost/0"})
    assert "canary" not in repr(told)
