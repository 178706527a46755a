"""A list by status finds exactly the servers that show it."""

from __future__ import annotations

import pytest

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.listing import StateCondition
from innkeeper.entrypoints.api.compute.servers import states

STATUSES = tuple(states.VM_STATES)
TASKS = (None, *(value for name, value in vars(Task).items() if name.isupper()))


def matches(condition: StateCondition, status: str, task: str | None) -> bool:
    """Whether a server in this state matches the condition, as in the store's queries."""
    if condition.status != status:
        return False
    return task in condition.tasks if condition.tasks else task not in condition.without_tasks


def test_every_status_has_a_vm_state() -> None:
    assert {value for name, value in vars(Status).items() if name.isupper()} == set(STATUSES)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("task", TASKS)
def test_a_list_finds_exactly_the_servers_that_show_its_status(
    status: str, task: str | None
) -> None:
    shown = states.shown(status, task)
    assert shown in states.WORDS
    found = [
        word
        for word in states.WORDS
        if any(matches(each, status, task) for each in states.of_status(word))
    ]
    assert found == [shown]


def test_a_vm_state_matches_any_task() -> None:
    assert states.of_vm_state("stopped") == (StateCondition(Status.SHUTOFF),)
    assert states.of_vm_state("dancing") == ()


def test_a_status_that_is_never_shown_matches_nothing() -> None:
    assert states.of_status("RESCUE") == ()
    assert states.of_status("DANCING") == ()
