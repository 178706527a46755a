"""A child zone that does not answer delays only the first plan and the first list.

That is long before it counts as inactive.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.zone_hosts import COSTLY, offers, report, select
from tests.support.zone_processes import ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DEADLINE_S = 4.0
PATIENT = {
    **COSTLY,
    "zone_select_timeout_s": str(DEADLINE_S),
    "zone_request_timeout_s": str(DEADLINE_S),
    "zone_poll_interval_s": "1",
    "zone_failures_to_offline": "1000",
}
OWN, BELOW = 30.0, 10.0
REPEATS = 5


def timed_plan(tree: ZoneTree) -> tuple[float, Any]:
    """Ask for a plan as an administrator. Return the time it took, and the plan."""
    begun_s = time.monotonic()
    answer = select(tree["root"], token="admin")
    assert answer.status_code == 200, answer.text
    return time.monotonic() - begun_s, answer.json()


def test_only_the_first_plan_waits_for_a_frozen_child(tmp_path: Path) -> None:
    with zone_tree(tmp_path) as tree:
        for name, cost in (("root", OWN), ("kid", BELOW)):
            tree.start(name, 0, PATIENT)
            report(tree[name], {"big": (100, cost)})
        tree.link("root", "kid")
        tree["root"].add_flavor()
        assert offers(tree["root"])[0]["weight"] == BELOW
        tree.freeze("kid")
        first_s, first = timed_plan(tree)
        later = [timed_plan(tree) for _ in range(REPEATS)]
        assert tree["root"].child("kid")["is_active"] is True
        assert first_s >= DEADLINE_S
        assert max(took_s for took_s, _ in later) < DEADLINE_S
        for told in (first, *(plan for _, plan in later)):
            assert told["is_partial"] is True
            assert told["missing_zones"] == ["kid"]
            assert told["weights"][0]["weight"] == OWN
        tree.thaw("kid")
        wait_for("it is asked again", lambda: offers(tree["root"])[0]["weight"] == BELOW)
        assert "is_partial" not in timed_plan(tree)[1]


def timed_list(tree: ZoneTree) -> tuple[float, Any]:
    """List all servers as an administrator. Return the time it took, and the list."""
    begun_s = time.monotonic()
    told = tree["root"].get("/servers?all_tenants=1")
    return time.monotonic() - begun_s, told


def test_only_the_first_list_waits_for_a_frozen_child(tmp_path: Path) -> None:
    with zone_tree(tmp_path) as tree:
        tree.start("root", 0, PATIENT)
        tree.start("kid", 1, PATIENT)
        tree.link("root", "kid")
        tree["root"].add_flavor()
        wait_for("it boots", lambda: tree["root"].boot().status_code == 202)
        assert len(timed_list(tree)[1]["servers"]) == 1
        tree.freeze("kid")
        first_s, first = timed_list(tree)
        later = [timed_list(tree) for _ in range(REPEATS)]
        assert tree["root"].child("kid")["is_active"] is True
        assert first_s >= DEADLINE_S
        assert max(took_s for took_s, _ in later) < DEADLINE_S
        for told in (first, *(each for _, each in later)):
            assert (told["servers"], told["is_partial"]) == ([], True)
        tree.thaw("kid")
        wait_for("it is asked again", lambda: "is_partial" not in timed_list(tree)[1])
        assert len(timed_list(tree)[1]["servers"]) == 1
