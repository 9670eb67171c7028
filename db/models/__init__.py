"""The schema, designed once, as a whole."""

from db.models.base import Base
from db.models.board import Agent, Blocker, Comment, Pause, Project, Seat, Step, StepTransition, Task, Workspace
from db.models.jobs import RecoveryJob
from db.models.runs import Run, Session
from db.models.wakes import Delivery, Event, Mutation, Wake

__all__ = [
    "Agent",
    "Base",
    "Blocker",
    "Comment",
    "Delivery",
    "Event",
    "Mutation",
    "Pause",
    "Project",
    "RecoveryJob",
    "Run",
    "Seat",
    "Session",
    "Step",
    "StepTransition",
    "Task",
    "Wake",
    "Workspace",
]
