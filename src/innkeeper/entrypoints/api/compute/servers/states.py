"""This module finds the API's status of a server.

This is the stored status of the server, or a status for its task in progress.

Always true: a list that is filtered by a status has exactly the servers with this status in the
API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.listing import StateCondition

VM_STATES: Mapping[str, str] = {
    Status.BUILD: "building",
    Status.ACTIVE: "active",
    Status.SHUTOFF: "stopped",
    Status.PAUSED: "paused",
    Status.SUSPENDED: "suspended",
    Status.VERIFY_RESIZE: "resized",
    Status.SHELVED: "shelved",
    Status.SHELVED_OFFLOADED: "shelved_offloaded",
    Status.ERROR: "error",
    Status.DELETED: "deleted",
}
"""The API's ``vm_state``, by the server's status."""

_RESIZING: Mapping[str, str] = {
    Task.RESIZE_PREP: "RESIZE",
    Task.RESIZE_MIGRATING: "RESIZE",
    Task.RESIZE_MIGRATED: "RESIZE",
    Task.RESIZE_FINISH: "RESIZE",
    Task.REBUILDING: "REBUILD",
}
_SHOWN: Mapping[str, Mapping[str, str]] = {
    Status.ACTIVE: {
        **_RESIZING,
        Task.REBOOTING: "REBOOT",
        Task.REBOOTING_HARD: "HARD_REBOOT",
        Task.MIGRATING: "MIGRATING",
    },
    Status.SHUTOFF: _RESIZING,
    Status.PAUSED: {Task.MIGRATING: "MIGRATING"},
    Status.VERIFY_RESIZE: {Task.RESIZE_REVERTING: "REVERT_RESIZE"},
    Status.ERROR: {Task.REBUILDING: "REBUILD"},
}
"""The API's status of a server during a task, by the stored status and then by the task."""

WORDS = frozenset(
    {
        *VM_STATES,
        *(shown for tasks in _SHOWN.values() for shown in tasks.values()),
        "PASSWORD",
        "RESCUE",
        "SOFT_DELETED",
        "UNKNOWN",
    }
)
"""All statuses of the API. Servers in Innkeeper never have the last four."""
_STATUS_OF = {word: status for status, word in VM_STATES.items()}


def shown(status: str, task_state: str | None) -> str:
    """Return the API's status of a server, from its stored status and its task."""
    return _SHOWN.get(status, {}).get(task_state or "", status)


def of_status(word: str) -> tuple[StateCondition, ...]:
    """Return the stored states for which the API shows this status. For an unknown status, return
    none."""
    return tuple(_states(word))


def _states(word: str) -> Iterator[StateCondition]:
    if word in VM_STATES:
        yield StateCondition(word, without_tasks=tuple(_SHOWN.get(word, ())))
    for status, tasks in _SHOWN.items():
        matching = tuple(task for task, shown_then in tasks.items() if shown_then == word)
        if matching:
            yield StateCondition(status, tasks=matching)


def of_vm_state(word: str) -> tuple[StateCondition, ...]:
    """Return the stored states for which the API shows this ``vm_state``."""
    status = _STATUS_OF.get(word)
    return () if status is None else (StateCondition(status),)
