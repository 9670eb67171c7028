"""Which arguments of which Celery task may be shown, and the one place that writes them out (OPS-1.1).

What Celery reports of a message - in events, in Flower, to `celery inspect`, in logs - is what `reported` returns: ids,
reasons, roles and statuses as they are, of payloads, titles and texts only their size.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from office_tasks.errors import InvalidInput
from office_tasks.prose import hidden, placed

# Every parameter in its order; those with a star hold what people or agents wrote.
ARGUMENTS: Final[Mapping[str, str]] = {
    "office.queue_run": "agent_profile_id reason payload* idempotency_key",
    "office.spawn_run": "calling_run_id agent_profile_id reason payload* key",
    "office.task_created": "task_id assignee_id assignment_generation",
    "office.task_updated": "task_id assignee_id assignment_generation",
    "office.assign_task": "task_id assignee_id caller_agent_id",
    "office.create_task": "workspace_id title* task_id step_id workflow_id project_id parent_id priority assignee_id "
    "caller_agent_id",
    "office.onboard_task": "workspace_id agent_profile_id title*",
    "office.enter_step": "task_id step_id step_transition_id",
    "office.set_task_status": "task_id status caller_agent_id comment_id comment_body*",
    "office.add_comment": "task_id comment_id body* author_type author_id",
    "office.add_participant": "task_id agent_profile_id role caller_agent_id",
    "office.remove_participant": "task_id agent_profile_id role caller_agent_id",
    "office.claim_seat": "task_id role displaced_agent_id claiming_agent_id caller_agent_id",
    "office.terminate_session": "task_id agent_profile_id reason",
    "office.delete_agent": "agent_profile_id",
    "office.settle_mutation": "mutation_id",
    "office.pause_workspace": "workspace_id reason* interrupt",
    "office.resume_workspace": "workspace_id",
    "office.execute_run": "",
    "recovery.relay_owed": "",
    "recovery.recover_unstarted_tasks": "",
    "recovery.rescue_stale_claims": "",
    "recovery.dispatch_queued_runs": "",
    "recovery.purge_history": "",
}

_HIDDEN: Final = "*"
_signature: Final = cache(inspect.signature)
_NAMES: Final = {task: tuple(row.split()) for task, row in ARGUMENTS.items()}


def reported(task: str, args: object, kwargs: object) -> tuple[str, str]:
    """Return what may be shown of a message's arguments, as Celery's `argsrepr` and `kwargsrepr`.

    Both are Python literals, so that Flower finds `kwargs:task_id=T1`. An unknown task shows nothing but sizes.

    Args:
        task: the name of the Celery task; any text.
        args: the positional arguments; anything else than a list or a tuple is taken for one that is hidden.
        kwargs: the arguments by name; likewise.
    """
    names = _NAMES.get(task, ())
    given = args if isinstance(args, list | tuple) else () if args is None else (args,)
    named = kwargs if isinstance(kwargs, Mapping) else {} if kwargs is None else {"": kwargs}
    return repr(tuple(_positional(names, given))), repr(dict(_by_name(names, named)))


def check_call(task: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Let a call pass that `function` can take.

    Python's own refusal would repeat the names of arguments that nobody knows, and they may say anything.

    Raises:
        InvalidInput: the sentence names parameters only, never what was given.
    """
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        raise InvalidInput(f"{task} cannot be called so: {'; '.join(_faults(function, args, kwargs))}") from None


def _faults(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterable[str]:
    parameters = _signature(function).parameters
    names = list(parameters)
    placed, rest = names[: len(args)], names[len(args) :]
    if excess := len(args) - len(placed):
        yield f"{excess} more than its {len(names)} arguments"
    if unknown := len(kwargs.keys() - set(names)):
        yield f"{unknown} by an unknown name"
    yield from (f"{name} is given twice" for name in placed if name in kwargs)
    without = (name for name in rest if name not in kwargs and parameters[name].default is inspect.Parameter.empty)
    yield from (f"{name} is missing" for name in without)


def _positional(names: tuple[str, ...], given: list[Any] | tuple[Any, ...]) -> Iterable[object]:
    yield from map(_shown, names, given)
    if excess := list(given[len(names) :]):
        yield _excess(len(excess), excess)


def _by_name(names: tuple[str, ...], named: Mapping[Any, Any]) -> Iterable[tuple[str, object]]:
    known = {name.removesuffix(_HIDDEN): name for name in names}
    yield from ((key, _shown(known[key], value)) for key, value in named.items() if key in known)
    # What nobody knows may say too much by its very name.
    if excess := {str(key): value for key, value in named.items() if key not in known}:
        yield "?", _excess(len(excess), excess)


def _shown(name: str, value: object) -> object:
    if name.endswith(_HIDDEN) and value not in (None, ""):
        return hidden(name.removesuffix(_HIDDEN), value)
    return placed(name.removesuffix(_HIDDEN), value)


def _excess(count: int, value: object) -> str:
    return hidden(f"{count} unknown", value)
