"""Zones that die in the middle of a boot over the tree: after a restart, nothing is half done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.zone_hosts import report
from tests.support.zone_processes import (
    COMPUTE,
    FLAVOR,
    USER,
    RunningZone,
    ZoneTree,
    broken,
    wait_for,
    zone_tree,
)
from tests.support.zone_relays import CREATE, UNDO, Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
QUICK = {"zone_request_timeout_s": "3", "zone_select_timeout_s": "2"}
PATIENT = {"zone_request_timeout_s": "12", "zone_select_timeout_s": "2"}
"""Settings with which a test has time for some steps while the child holds a request."""
WITHIN_S = 60.0
BATCH, OWN = 4, 2
"""The servers of a batch, and how many of them have a host in the root."""


@dataclass(slots=True)
class Pair:
    """A root with room for two servers, and its child behind a relay."""

    tree: ZoneTree
    root: RunningZone
    kid: RunningZone
    relay: Relay

    def boot_and_kill(self, path: str, *, passes: bool, count: int = BATCH) -> None:
        """Boot a batch, and kill the root while its child holds a request of this path."""
        held = self.relay.hold(path, passes=passes)
        sending = threading.Thread(target=self.boot, args=(count,))
        sending.start()
        assert held.wait(WITHIN_S), "the child was asked"
        wait_for("the root built its own", lambda: len(self.own_ids()) == OWN)
        self.tree.kill("root")
        sending.join()
        self.relay.release()
        self.tree.restart("root")

    def boot(self, count: int) -> None:
        """Boot a batch; its answer may be lost."""
        with suppress(httpx.TransportError):
            self.root.boot(count)

    def delete_one_below(self) -> None:
        """Delete a server that the child built, and wait until the child has deleted it."""
        wait_for("the child built", lambda: len(self.kid.server_ids()) == BATCH - OWN)
        uuid = self.kid.server_ids()[0]
        answer = self.root.call("DELETE", f"/servers/{uuid}", token=USER)
        assert answer.status_code == httpx.codes.NO_CONTENT, answer.text
        wait_for("it is gone", lambda: uuid not in self.kid.server_ids())
        gone = self.root.call("GET", f"/servers/{uuid}", token=USER)
        assert gone.status_code == httpx.codes.NOT_FOUND

    def own_ids(self) -> set[str]:
        """Return the servers in the root itself, which lists those of its child too."""
        return set(self.root.server_ids()) - set(self.kid.server_ids())

    def used(self) -> tuple[int, int]:
        """Return the servers and the cores that count for the user's project."""
        absolute = self.root.get("/limits", USER)["limits"]["absolute"]
        return absolute["totalInstancesUsed"], absolute["totalCoresUsed"]

    def wait_for_servers(self, own: int, below: int) -> None:
        """Wait until the zones have these servers, and both audits are clean."""

        def is_so() -> bool:
            there: Any = len(self.own_ids()), len(self.kid.server_ids())
            total = own + below
            is_known = self.root.child("kid")["servers"] == below
            is_counted = self.used() == (total, total * FLAVOR["vcpus"])
            return bool(there == (own, below) and is_known and is_counted)

        wait_for("the batch is decided", is_so)
        assert broken(self.root) == broken(self.kid) == []


@pytest.fixture
def settings() -> dict[str, str]:
    """The settings of both zones."""
    return QUICK


@pytest.fixture
def pair(tmp_path: Path, settings: dict[str, str]) -> Iterator[Pair]:
    """A root and its child."""
    with zone_tree(tmp_path) as tree:
        root = tree.start("root", hosts=1, settings=settings)
        kid = tree.start("kid", hosts=2, settings=settings)
        root.add_flavor()
        with relay_to(kid.address) as relay:
            tree.link("root", "kid", api_url=relay.address + COMPUTE)
            yield Pair(tree, root, kid, relay)


def test_a_batch_is_undone_if_its_zone_died_before_the_child_built(pair: Pair) -> None:
    """The child never got the request, so the root's own servers are deleted, too."""
    pair.boot_and_kill(CREATE, passes=False)
    pair.wait_for_servers(0, 0)


def test_a_batch_is_kept_if_its_zone_died_after_the_child_built(pair: Pair) -> None:
    """All servers exist, so the batch is finished."""
    pair.boot_and_kill(CREATE, passes=True)
    pair.wait_for_servers(OWN, BATCH - OWN)


def test_a_batch_is_kept_if_its_zone_died_after_its_answer(pair: Pair) -> None:
    """The root answers before it records that the child has built."""
    assert pair.root.boot(BATCH).status_code == httpx.codes.ACCEPTED
    pair.tree.kill("root")
    pair.tree.restart("root")
    pair.wait_for_servers(OWN, BATCH - OWN)


@pytest.mark.parametrize("settings", [PATIENT])
def test_a_user_deletes_a_server_while_its_batch_is_undecided(pair: Pair) -> None:
    """All servers were built, so the others stay, and the boot succeeds."""
    held = pair.relay.hold(CREATE, passes=True, answers=True)
    with ThreadPoolExecutor(1) as pool:
        booting = pool.submit(pair.root.boot, BATCH)
        assert held.wait(WITHIN_S), "the child was asked"
        pair.delete_one_below()
        pair.relay.release()
        assert booting.result().status_code == httpx.codes.ACCEPTED
    pair.wait_for_servers(OWN, BATCH - OWN - 1)


@pytest.mark.parametrize("settings", [PATIENT])
def test_a_user_deletes_a_server_and_the_zone_dies_before_it_decides(pair: Pair) -> None:
    held = pair.relay.hold(CREATE, passes=True)
    sending = threading.Thread(target=pair.boot, args=(BATCH,))
    sending.start()
    assert held.wait(WITHIN_S), "the child was asked"
    wait_for("the root built its own", lambda: len(pair.own_ids()) == OWN)
    pair.delete_one_below()
    pair.tree.kill("root")
    sending.join()
    pair.relay.release()
    pair.tree.restart("root")
    pair.wait_for_servers(OWN, BATCH - OWN - 1)


def test_an_undo_is_finished_if_its_zone_died(pair: Pair) -> None:
    """The child's answer to the create is lost, and the root dies while the child undoes."""
    pair.relay.hold(CREATE, passes=True)
    pair.boot_and_kill(UNDO, passes=False)
    pair.wait_for_servers(0, 0)


def test_an_undone_server_counts_until_its_agent_deleted_it(tmp_path: Path) -> None:
    """The child's answers are lost. Its agent is silent, so the deletes wait until it is down."""
    with zone_tree(tmp_path) as tree:
        root = tree.start("root", hosts=0, settings=QUICK)
        kid = tree.start("kid", hosts=0, settings=QUICK | {"service_down_time_s": "20"})
        report(kid, {"big": (BATCH, 1.0)})
        root.add_flavor()
        with relay_to(kid.address) as relay:
            tree.link("root", "kid", api_url=relay.address + COMPUTE)
            relay.hold(CREATE, passes=True)
            assert root.boot().status_code == httpx.codes.ACCEPTED
            relay.release()
            waiting = kid.server_ids()
            assert waiting
            assert root.child("kid")["servers"] == len(waiting)
            failed = root.server_ids()
            assert set(failed) > set(waiting), "the root lists them, and its own server in ERROR"
            wait_for("the deletes are done", lambda: not kid.server_ids())
            wait_for("the root knows it", lambda: root.child("kid")["servers"] == 0)
            assert set(root.server_ids()) == set(failed) - set(waiting)
            assert broken(root) == broken(kid) == []
