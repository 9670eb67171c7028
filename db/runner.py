"""What many questions ask of a task, each defined once: who drives it (SES-2.1), and whether it is an office task."""

from __future__ import annotations

from typing import Final

# Scalar subqueries over a row `tasks` of the statement around them, by which tier of the projection each is, in their
# order. `id` breaks ties, so that every server agrees.
_TIERS: Final = {
    "seat": """
        (SELECT nullif(seats.agent_profile_id, '') FROM seats
         WHERE seats.task_id = tasks.id AND seats.role = 'runner'
           AND seats.step_id IS NOT DISTINCT FROM tasks.step_id)""",
    "primary_agent": """
        (SELECT nullif(steps.primary_agent_id, '') FROM steps WHERE steps.id = tasks.step_id)""",
    "earlier_seat": """
        (SELECT seats.agent_profile_id FROM seats
         WHERE seats.task_id = tasks.id AND seats.role = 'runner' AND seats.agent_profile_id <> ''
         ORDER BY seats.created_at DESC, seats.id DESC LIMIT 1)""",
}

RUNNER_OF_TASK: Final = f"coalesce({', '.join(_TIERS.values())})"

# By which tier that is: its seat where the task stands, the step's primary agent, or its newest seat at another step.
_FOUND_BY: Final = " ".join(f"WHEN {found} IS NOT NULL THEN '{tier}'" for tier, found in _TIERS.items())
RUNNER_BY: Final = f"CASE {_FOUND_BY} END"

# A condition over a row `tasks`: in a project, or on its workspace's office workflow (PRO-3.4).
IS_OFFICE_TASK: Final = """
    (tasks.project_id IS NOT NULL OR coalesce(tasks.workflow_id = (
        SELECT workspaces.office_workflow_id FROM workspaces WHERE workspaces.id = tasks.workspace_id), false))"""
