"""A write that lost to another writer is repeated: a limited number of times, and only then."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import innkeeper
from innkeeper.domain.errors import (
    Busy,
    Collided,
    ConcurrentUpdate,
    Doubtful,
    Invalid,
    Overtaken,
    ProviderChanged,
    Refusal,
    Unreachable,
)
from innkeeper.domain.slices import SLICES, Settings
from innkeeper.engine import order_watch, retry
from innkeeper.engine.leader import election, link
from innkeeper.engine.leases import events as lease_events
from innkeeper.engine.periodic import SWEEP_PERIOD_S
from innkeeper.engine.pods import reconciling
from innkeeper.engine.retry import (
    ALLOCATIONS,
    ELECTION,
    GALERA_WRITER,
    LEADER_LINK,
    LEASE_EVENT,
    NEXT_TURN,
    ORDER_LOOK,
    POD_CHECK,
    RESHAPE,
    TABLE,
    UPGRADE,
    WEBHOOK,
    again,
)
from innkeeper.engine.retry_rows import Retry, Setting
from innkeeper.store import schema
from innkeeper.store.backends import galera
from innkeeper.systems.leases import notifications
from tests.tidy.tree import ROOT, python_files

ATTEMPTS_MAX = 4


class Attempts:
    """An attempt whose outcomes the test gives, one after the other."""

    def __init__(self, outcomes: Sequence[Refusal | str]) -> None:
        self.left = list(outcomes)
        self.made = 0

    async def __call__(self) -> str:
        self.made += 1
        outcome = self.left.pop(0)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome


def wait_for(attempts: Attempts, row: Retry = ALLOCATIONS) -> str:
    """Repeat the attempt until it succeeds."""
    with capture_logs():
        return asyncio.run(again(attempts, row, ATTEMPTS_MAX))


@pytest.mark.parametrize("lost", range(ATTEMPTS_MAX))
def test_an_overtaken_write_is_tried_again(lost: int) -> None:
    attempts = Attempts([ProviderChanged(1, 7)] * lost + ["written"])
    assert wait_for(attempts) == "written"
    assert attempts.made == lost + 1


def test_after_too_many_conflicts_the_client_is_told_to_retry() -> None:
    attempts = Attempts([ProviderChanged(1, 7), Overtaken("Somebody came between.")] * 9)
    with pytest.raises(ConcurrentUpdate) as caught:
        wait_for(attempts)
    assert attempts.made == ATTEMPTS_MAX
    assert not isinstance(caught.value, Overtaken)
    assert caught.value.code == "concurrent_update"
    assert caught.value.message == (
        "Inventory and/or allocations changed while attempting to allocate: Another thread "
        "concurrently updated the resource provider data. Please retry your update"
    )


def test_each_request_has_its_own_words_for_it() -> None:
    with pytest.raises(ConcurrentUpdate, match=r"^update conflict: Another thread"):
        wait_for(Attempts([Overtaken("Somebody came between.")] * 9), RESHAPE)


@pytest.mark.parametrize("refusal", [ConcurrentUpdate("The consumer moved on."), Invalid("No.")])
def test_what_the_client_must_decide_is_not_repeated(refusal: Refusal) -> None:
    attempts = Attempts([ProviderChanged(1, 7), refusal, "written"])
    with pytest.raises(type(refusal)) as caught:
        wait_for(attempts)
    assert caught.value is refusal
    assert attempts.made == 2


# -- the table ---------------------------------------------------------------------------------

SOURCE = Path(innkeeper.__file__).parent


def settings_named() -> dict[str, object]:
    """Every setting's default, by name."""
    return {
        name: getattr(getattr(Settings(), slice_name), name)
        for slice_name, kind in SLICES.items()
        for name in kind.__struct_fields__
    }


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.happened)
def test_every_row_names_what_is_there(row: Retry) -> None:
    assert [each for each in row.where if not (SOURCE / each).exists()] == []
    for bound in (row.attempts_max, row.within_s):
        if isinstance(bound, Setting):
            assert bound.of(Settings()) == settings_named()[bound.name]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.happened)
def test_every_retry_has_a_bound_where_somebody_waits(row: Retry) -> None:
    is_bounded = row.attempts_max is not None or row.within_s is not None
    assert is_bounded or row.answer.startswith("none; ")


PASSED_ON = frozenset({"commands.py", "engine/repeats.py"})
"""Modules that only pass a row to the module that retries."""


def test_every_module_that_uses_a_row_is_named_by_it() -> None:
    used = [
        (file.path.removeprefix("src/innkeeper/"), alias.name)
        for file in python_files("src/innkeeper")
        for node in ast.walk(file.tree())
        if isinstance(node, ast.ImportFrom) and node.module == retry.__name__
        for alias in node.names
        if isinstance(getattr(retry, alias.name), Retry)
    ]
    assert used
    unnamed = [
        (path, name)
        for path, name in used
        if path not in PASSED_ON and not path.startswith(getattr(retry, name).where)
    ]
    assert unnamed == []


def test_every_error_of_others_being_in_the_way_is_in_the_table() -> None:
    named = {error for row in TABLE for error in row.errors}
    others = {ConcurrentUpdate, Overtaken, ProviderChanged, Busy, Collided, Doubtful, Unreachable}
    assert others <= named


def test_loops_on_lower_floors_have_the_numbers_of_the_table() -> None:
    assert GALERA_WRITER.attempts_max == galera.ATTEMPTS_MAX
    assert UPGRADE.within_s == schema.UPGRADE_WITHIN_S
    assert UPGRADE.pauses_s[0] == schema.FIRST_PAUSE_S
    assert UPGRADE.pauses_s[-1] == schema.LONGEST_PAUSE_S
    assert NEXT_TURN.pauses_s == (SWEEP_PERIOD_S,)
    assert POD_CHECK.pauses_s == (reconciling.RETRY_S,)
    assert ORDER_LOOK.pauses_s == (order_watch.AFTER_FAILURE_S,)
    assert ELECTION.pauses_s == (election.PERIOD_S,)
    assert LEADER_LINK.pauses_s[0] == link.AGAIN_S
    assert LEADER_LINK.pauses_s[-1] == link.AGAIN_MAX_S
    assert WEBHOOK.attempts_max == notifications.FAILURES_MAX
    assert WEBHOOK.pauses_s[-1] == notifications.PAUSE_MAX_S
    assert LEASE_EVENT.pauses_s[0] == lease_events.FAILED_FIRST_S
    assert LEASE_EVENT.pauses_s[-1] == lease_events.FAILED_MAX_S


def test_the_page_about_claims_has_a_line_for_every_row() -> None:
    page = (ROOT / "docs" / "explanation" / "a-claim.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(table) == len(TABLE)
    for row, line in zip(TABLE, table, strict=True):
        assert line.startswith("| " + ", ".join(f"`{each.__name__}`" for each in row.errors))
        for bound in (row.attempts_max, row.within_s):
            if isinstance(bound, Setting):
                assert f"`{bound.name}`" in line
