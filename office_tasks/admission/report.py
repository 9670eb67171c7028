"""Counters and decision logs: after the deciding commit, once per decided wake (ADM-9.2)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from db.facts import Facts
from office_tasks import telemetry
from office_tasks.admission.allowance import Standing, standing
from office_tasks.admission.decision import Answer, Outcome
from office_tasks.admission.wake import Wake
from office_tasks.admission.windows import ASSIGNMENT_ALLOWANCE
from office_tasks.errors import POISONED, PauseGateUnavailable
from office_tasks.telemetry import log

_PAST_GATE_FOUR = frozenset({"assignment_allowance", "insert"})


def report(wake: Wake, answer: Answer, facts: Facts, unread: Mapping[str, str]) -> None:
    """Count and log one decision. Never fails: telemetry must not turn an admission into an error (ADM-9.4)."""
    for part in (_admission, _keyless, _dedup, _allowance, _refusal):
        # The log is what may have failed, so there is nowhere to say so.
        with suppress(Exception):
            part(wake, answer, facts, unread)


def _admission(wake: Wake, answer: Answer, _facts: Facts, _unread: Mapping[str, str]) -> None:
    telemetry.count_admission(wake.reason, answer.outcome.value)
    if answer.outcome is Outcome.QUEUED:
        log.info("run_queued", run_id=str(answer.run_id), agent_profile_id=wake.agent_profile_id, reason=wake.reason)


def _keyless(wake: Wake, _answer: Answer, _facts: Facts, _unread: Mapping[str, str]) -> None:
    if wake.keyless is None:
        return
    telemetry.count_keyless(wake.reason, wake.keyless.cause)
    if wake.keyless.cause == "unresolved":
        log.info("run_enqueued_keyless", reason=wake.reason, cause=wake.keyless.cause, detail=wake.keyless.detail)


def _dedup(wake: Wake, answer: Answer, _facts: Facts, _unread: Mapping[str, str]) -> None:
    if answer.outcome is not Outcome.DEDUPED:
        return
    said = {"key": wake.key, "reason": wake.reason}
    if answer.gate == "insert":
        telemetry.count_dedup(wake.reason, "durable")
        log.warning("run_deduplicated", **said, kind="durable", agent_profile_id=wake.agent_profile_id)
    else:
        telemetry.count_dedup(wake.reason, "windowed")
        log.info("run_deduplicated", **said, kind="windowed")


def _allowance(wake: Wake, answer: Answer, facts: Facts, unread: Mapping[str, str]) -> None:
    if answer.gate not in _PAST_GATE_FOUR:
        return
    found = standing(wake, facts.assignments)
    if found in (Standing.OUT_OF_SCOPE, Standing.WITHIN):
        return
    telemetry.count_limit(str(found.value))
    actor = {"actor_id": wake.actor_id} if wake.actor_id else {}
    if found is Standing.UNATTRIBUTED:
        log.warning("assignment_wake_unattributed", reason=wake.reason, allowance=ASSIGNMENT_ALLOWANCE, **actor)
        return
    whose = {"task_id": wake.task_id, "agent_profile_id": wake.agent_profile_id, "actor_id": wake.actor_id}
    if found is Standing.UNCOUNTED:
        error = unread.get("assignments", "")
        log.warning("assignment_count_failed", **whose, allowance=ASSIGNMENT_ALLOWANCE, error=error)
    else:
        log.warning("assignment_wake_refused", **whose, observed=answer.observed, allowance=ASSIGNMENT_ALLOWANCE)


def _refusal(wake: Wake, answer: Answer, facts: Facts, unread: Mapping[str, str]) -> None:
    if answer.refusal is None:
        return
    if answer.refusal == POISONED:
        log.error("wake_poisoned", wake_id=wake.id, agent_profile_id=wake.agent_profile_id, reason=wake.reason)
        return
    telemetry.count_refusal(wake.reason, answer.refusal)
    if answer.refusal == PauseGateUnavailable.refusal:
        error = unread.get("paused", "the agent's workspace is missing")
        whose = {"agent_profile_id": wake.agent_profile_id, "workspace_id": facts.workspace_id}
        log.warning("pause_gate_unavailable", **whose, error=error)
