"""Setting up an office: plain functions over an engine, which the `office` commands call too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from db import board, seating
from db.errors import violates
from db.models import Agent, Base, Project, Seat, Step, Workspace
from db.states import AGENT_STATUSES, WAKEABLE
from office_tasks import validation
from office_tasks.errors import InvalidInput, NotFound
from office_tasks.ids import new_id
from office_tasks.producers.assignments import check_agent
from office_tasks.prose import shown

LOOKBACK_HOURS: Final = (1, 720)


def create_workspace(
    engine: Engine,
    workspace_id: str,
    name: str = "",
    *,
    workflow_id: str = "",
    recovery_lookback_hours: int = 24,
    is_replay: bool = False,
) -> None:
    """Create a workspace; `workflow_id` names its office workflow; the lookback is clamped to 1 to 720 h (REC-1.1).

    A replay's workspace is one that no claimer and no sweep touches (OPS-1.5).

    Raises:
        InvalidInput: a bad identifier, or one that is taken.
    """
    low, high = LOOKBACK_HOURS
    _insert(
        engine,
        Workspace,
        id=validation.identifier("workspace_id", workspace_id),
        name=validation.text("name", name),
        office_workflow_id=validation.optional_identifier("workflow_id", workflow_id),
        recovery_lookback_hours=max(low, min(high, recovery_lookback_hours)),
        is_replay=is_replay,
    )


def create_agent(
    engine: Engine,
    workspace_id: str,
    agent_profile_id: str,
    name: str = "",
    *,
    role: str = "worker",
    status: str = WAKEABLE,
    permissions: Sequence[str] | None = None,
    max_concurrent_sessions: int | None = None,
) -> None:
    """Create an agent; its own permissions, when given, override its role's (SES-5).

    Raises:
        InvalidInput: a bad identifier, one that is taken, or an unknown status.
        NotFound: no such workspace.
    """
    _require_workspace(engine, workspace_id)
    _insert(
        engine,
        Agent,
        id=validation.identifier("agent_profile_id", agent_profile_id),
        workspace_id=workspace_id,
        name=validation.text("name", name),
        role=validation.identifier("role", role),
        status=_agent_status(status),
        permissions=None if permissions is None else list(permissions),
        max_concurrent_sessions=max_concurrent_sessions,
    )


def set_agent_status(engine: Engine, agent_profile_id: str, status: str) -> str:
    """Set whether an agent may be woken: `active`, `paused`, `stopped` or `pending_approval`.

    Its queued runs wait while it may not; what it executes goes on.

    Returns:
        The status that it had before.

    Raises:
        InvalidInput: a bad identifier, or an unknown status.
        NotFound: no such agent.
    """
    wanted = validation.identifier("agent_profile_id", agent_profile_id)
    before = select(Agent.status).where(Agent.id == wanted).with_for_update()
    changed = update(Agent).where(Agent.id == wanted).values(status=_agent_status(status))
    with engine.begin() as connection:
        was = connection.execute(before).scalar_one_or_none()
        if was is None:
            raise NotFound(f"there is no agent {shown(agent_profile_id)}")
        connection.execute(changed)
    return was


def create_project(engine: Engine, workspace_id: str, project_id: str, name: str = "") -> None:
    """Create a project; its tasks are office tasks (PRO-3.4).

    Raises:
        InvalidInput: a bad identifier, or one that is taken.
        NotFound: no such workspace.
    """
    _require_workspace(engine, workspace_id)
    _insert(
        engine,
        Project,
        id=validation.identifier("project_id", project_id),
        workspace_id=workspace_id,
        name=validation.text("name", name),
    )


def create_step(
    engine: Engine,
    workspace_id: str,
    step_id: str,
    name: str = "",
    *,
    workflow_id: str,
    auto_start: bool = False,
    primary_agent_id: str = "",
) -> None:
    """Create a step of a workflow; one that auto-starts wakes whoever drives a task on it.

    Raises:
        InvalidInput: a bad identifier, or one that is taken.
        NotFound: no such workspace.
    """
    _require_workspace(engine, workspace_id)
    _insert(
        engine,
        Step,
        id=validation.identifier("step_id", step_id),
        workspace_id=workspace_id,
        workflow_id=validation.identifier("workflow_id", workflow_id),
        name=validation.text("name", name),
        auto_start=auto_start,
        primary_agent_id=validation.optional_identifier("primary_agent_id", primary_agent_id),
    )


def add_template_seat(engine: Engine, step_id: str, role: str, agent_profile_id: str) -> bool:
    """Give an agent a seat on every task at a step, now and later (SES-2.2).

    Returns:
        False when it sits there already.

    Raises:
        InvalidInput: a bad identifier, no such role, or the runner's, who is the step's primary agent; an agent of
            another workspace.
        NotFound: no such step or agent.
    """
    seat = _template_seat(step_id, role, agent_profile_id)
    if seat["role"] == "runner":
        raise InvalidInput("role: a step's runner is its primary agent, and a task's is assigned")
    with engine.begin() as connection:
        people = board.people(connection, agent_profile_id)
        check_agent("agent_profile_id", agent_profile_id, people, _workspace_of_step(connection, step_id))
        return seating.sit(connection, seat, new_id(), None)


def remove_template_seat(engine: Engine, step_id: str, role: str, agent_profile_id: str) -> bool:
    """Take an agent's seat on every task at a step away. The agent need not exist any more; no session ends by it.

    Returns:
        False when it has no such seat.

    Raises:
        InvalidInput: a bad identifier, or no such role.
        NotFound: no such step.
    """
    seat = _template_seat(step_id, role, agent_profile_id)
    with engine.begin() as connection:
        _workspace_of_step(connection, step_id)
        return connection.execute(delete(Seat).filter_by(**seat)).rowcount == 1


def _template_seat(step_id: str, role: str, agent_profile_id: str) -> dict[str, str | None]:
    return {
        "task_id": None,
        "step_id": validation.identifier("step_id", step_id),
        "role": validation.seat_role(role),
        "agent_profile_id": validation.identifier("agent_profile_id", agent_profile_id),
    }


def _workspace_of_step(connection: Connection, step_id: str) -> str:
    workspace_id = connection.execute(select(Step.workspace_id).where(Step.id == step_id)).scalar_one_or_none()
    if workspace_id is None:
        raise NotFound(f"there is no step {shown(step_id)}")
    return workspace_id


def _agent_status(status: str) -> str:
    if status not in AGENT_STATUSES:
        raise InvalidInput(f"status: must be one of {', '.join(AGENT_STATUSES)}, not {shown(status)}")
    return status


def _require_workspace(engine: Engine, workspace_id: str) -> None:
    wanted = validation.identifier("workspace_id", workspace_id)
    with engine.connect() as connection:
        if not connection.execute(select(exists().where(Workspace.id == wanted))).scalar_one():
            raise NotFound(f"there is no workspace {shown(wanted)}")


def _insert(engine: Engine, model: type[Base], **columns: Any) -> None:  # noqa: ANN401 - the model's own columns
    try:
        with engine.begin() as connection:
            connection.execute(insert(model).values(**columns))
    except IntegrityError as error:
        if violates(error, f"pk_{model.__tablename__}"):
            raise InvalidInput(f"there is already {shown(columns['id'])} among the {model.__tablename__}") from None
        raise
