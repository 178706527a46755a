"""What a server shows, and what a listing by that finds, are the same thing."""

from __future__ import annotations

import pytest

from innkeeper.domain.compute import Status, Task
from innkeeper.domain.listing import StateCondition
from innkeeper.entrypoints.api.compute.servers import states

STATUSES = tuple(states.VM_STATES)
TASKS = (None, *(value for name, value in vars(Task).items() if name.isupper()))


def fits(wish: StateCondition, status: str, task: str | None) -> bool:
    """Whether a server in this state is what is wished for, as the store understands it."""
    if wish.status != status:
        return False
    return task in wish.tasks if wish.tasks else task not in wish.without_tasks


def test_every_status_has_its_second_word() -> None:
    assert {value for name, value in vars(Status).items() if name.isupper()} == set(STATUSES)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("task", TASKS)
def test_a_listing_finds_exactly_what_shows_its_status(status: str, task: str | None) -> None:
    shown = states.shown(status, task)
    assert shown in states.WORDS
    found = [
        word
        for word in states.WORDS
        if any(fits(wish, status, task) for wish in states.of_status(word))
    ]
    assert found == [shown]


def test_second_words_find_whatever_is_being_done() -> None:
    assert states.of_vm_state("stopped") == (StateCondition(Status.SHUTOFF),)
    assert states.of_vm_state("dancing") == ()


def test_what_is_never_shown_finds_nothing() -> None:
    assert states.of_status("RESCUE") == ()
    assert states.of_status("DANCING") == ()
