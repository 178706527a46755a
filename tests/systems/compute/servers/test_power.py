"""Power actions: a server's state before and after its agent has confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from innkeeper.domain.compute import Locker, Power, Status, Task
from innkeeper.domain.errors import Locked, NotFound, WrongState
from innkeeper.systems.compute.moves import completion
from innkeeper.systems.compute.servers import history, power, servers
from tests.support.moves import POWER_ACTIONS, SMALL_TAKES, Movers


@pytest.fixture
def movers(tmp_path: Path) -> Iterator[Movers]:
    """Two hosts, each with an agent of its own."""
    made = Movers(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("there", "back", "status", "state"),
    [
        ("stop", "start", Status.SHUTOFF, Power.SHUTDOWN),
        ("pause", "unpause", Status.PAUSED, Power.PAUSED),
        ("suspend", "resume", Status.SUSPENDED, Power.SHUTDOWN),
    ],
)
def test_a_server_goes_off_and_on_again(
    movers: Movers, there: str, back: str, status: str, state: int
) -> None:
    uuid = movers.boot()
    movers.act(POWER_ACTIONS[there], uuid)
    assert movers.server(uuid).status == Status.ACTIVE
    with pytest.raises(WrongState) as caught:
        movers.act(POWER_ACTIONS[there], uuid)
    assert caught.value.fact == "task_state"
    movers.tell(there, uuid)
    assert movers.state(uuid) == (status, None, "a1")
    assert movers.server(uuid).power_state == state
    with pytest.raises(WrongState) as caught:
        movers.act(POWER_ACTIONS[there], uuid)
    assert (caught.value.fact, caught.value.value) == ("status", status)
    movers.act(POWER_ACTIONS[back], uuid)
    movers.tell(back, uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    assert movers.server(uuid).power_state == Power.RUNNING
    assert movers.held(uuid) == {"a1": SMALL_TAKES}


@pytest.mark.parametrize("is_late", [False, True])
def test_a_failed_or_late_action_leaves_the_server_unchanged(movers: Movers, is_late: bool) -> None:
    uuid = movers.boot()
    movers.act(power.stop, uuid)
    if is_late:
        movers.wait()
        movers.sweep()
    else:
        movers.tell("stop", uuid, "It hangs.")
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    action = movers.cloud.read(lambda tx: history.action(tx, uuid, "req-1"))
    assert action.message == (
        "A host did not confirm the order 'stop' in time."
        if is_late
        else "A host could not carry out the order 'stop'."
    )
    assert ("Host a1" if is_late else "It hangs.") in action.events[0].message
    assert [each.result for each in action.events] == ["Error"]


def test_a_soft_reboot_needs_a_running_server_and_a_hard_one_does_not(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.pause, uuid)
    with pytest.raises(WrongState):
        movers.act(power.reboot, uuid, is_hard=False)
    movers.act(power.reboot, uuid, is_hard=True)
    assert movers.state(uuid) == ("ACTIVE", Task.REBOOTING_HARD, "a1")
    # Results of earlier actions do not count any more.
    movers.tell("pause", uuid)
    assert movers.state(uuid) == ("ACTIVE", Task.REBOOTING_HARD, "a1")
    movers.tell("reboot", uuid)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")
    movers.act(power.reboot, uuid, is_hard=False)
    (order,) = movers.waiting("reboot")
    assert order.body["how"] == "soft"


def test_a_locked_server_rejects_power_actions(movers: Movers) -> None:
    uuid = movers.boot()
    movers.cloud.write(lambda tx: servers.lock(tx, uuid, Locker.OWNER, None, movers.now))
    with pytest.raises(Locked):
        movers.act(power.stop, uuid)
    above = replace(movers.initiator(), may_override=True)
    movers.cloud.write(lambda tx: power.stop(tx, uuid, above, now=movers.now))
    assert movers.server(uuid).task_state == Task.POWERING_OFF


def test_a_server_that_never_ran_cannot_be_stopped(movers: Movers) -> None:
    (booted,) = movers.cloud.boot(movers.cloud.request(1, forced_host="a1"))
    (uuid,) = booted.server_ids  # type: ignore[union-attr]
    with pytest.raises(WrongState):
        movers.act(power.stop, uuid)
    movers.tell("build", uuid, "No disk.")
    with pytest.raises(WrongState) as caught:
        movers.act(power.stop, uuid)
    assert caught.value.fact == "launched_at"
    with pytest.raises(NotFound):
        movers.act(power.stop, "00000000-0000-4000-8000-00000000ffff")


def test_a_server_deleted_during_an_action_is_deleted(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.stop, uuid)
    movers.delete(uuid)
    movers.finish()
    assert movers.server(uuid).status == Status.DELETED


def test_an_administrator_resets_a_servers_state(movers: Movers) -> None:
    uuid = movers.boot()
    movers.act(power.stop, uuid)
    movers.act(completion.reset_state, uuid, status=Status.ERROR)
    assert movers.state(uuid) == ("ERROR", None, "a1")
    # The reset ends the action without a result.
    movers.tell("stop", uuid)
    assert movers.state(uuid) == ("ERROR", None, "a1")
    movers.act(completion.reset_state, uuid, status=Status.ACTIVE)
    assert movers.state(uuid) == ("ACTIVE", None, "a1")


def test_after_a_reset_a_moving_server_holds_one_host(movers: Movers) -> None:
    uuid = movers.boot()
    movers.resize(uuid)
    movers.tell("depart", uuid)
    movers.act(completion.reset_state, uuid, status=Status.ACTIVE)
    movers.judge()
    assert movers.held(uuid) == {"a1": SMALL_TAKES}
    movers.finish()
    assert movers.held(movers.migration(uuid).uuid) == {}
    assert movers.usage() == (1, 1, 1024)
