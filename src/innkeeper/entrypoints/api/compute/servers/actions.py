"""What can be done to a server: one table of actions, and the route that all of them share.

Always true: the body's one key names the action, and the action's own rule is asked about the
server; who may not see the server does not learn that it is there.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.entrypoints.api.compute.servers import administration, moves, power, shelving
from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.compute.servers.acting import Acting, ServerAction, in_words
from innkeeper.entrypoints.api.compute.servers.action_schemas import (
    EVACUATE,
    LOCK,
    MIGRATE,
    MIGRATE_LIVE,
    NOT_LOOKED_AT,
    REBOOT,
    RESET_STATE,
    RESIZE,
    SET_DEDICATED_HOSTS,
    UNSHELVE,
)
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.routing import Answer, Call

_SERVERS = "os_compute_api:servers"
_LOCKS = "os_compute_api:os-lock-server"
_MIGRATES = "os_compute_api:os-migrate-server"
_SHELVES = "os_compute_api:os-shelve"
_PAUSES = "os_compute_api:os-pause-server"
_SUSPENDS = "os_compute_api:os-suspend-server"

ACTIONS: Mapping[str, ServerAction] = {
    "confirmResize": ServerAction(
        NOT_LOOKED_AT, f"{_SERVERS}:confirm_resize", moves.confirm_resize
    ),
    "evacuate": ServerAction(EVACUATE, "os_compute_api:os-evacuate", moves.evacuate),
    "forceDelete": ServerAction(
        NOT_LOOKED_AT, "os_compute_api:os-deferred-delete:force", administration.force_delete
    ),
    "lock": ServerAction(LOCK, f"{_LOCKS}:lock", administration.lock),
    "migrate": ServerAction(MIGRATE, f"{_MIGRATES}:migrate", moves.migrate),
    "os-migrateLive": ServerAction(MIGRATE_LIVE, f"{_MIGRATES}:migrate_live", moves.migrate_live),
    "os-resetState": ServerAction(
        RESET_STATE, "os_compute_api:os-admin-actions:reset_state", administration.reset_state
    ),
    "os-start": ServerAction(NOT_LOOKED_AT, f"{_SERVERS}:start", power.start, word="start"),
    "os-stop": ServerAction(NOT_LOOKED_AT, f"{_SERVERS}:stop", power.stop, word="stop"),
    "pause": ServerAction(NOT_LOOKED_AT, f"{_PAUSES}:pause", power.pause),
    "reboot": ServerAction(REBOOT, f"{_SERVERS}:reboot", power.reboot),
    "resize": ServerAction(RESIZE, f"{_SERVERS}:resize", moves.resize),
    "resume": ServerAction(NOT_LOOKED_AT, f"{_SUSPENDS}:resume", power.resume),
    "revertResize": ServerAction(NOT_LOOKED_AT, f"{_SERVERS}:revert_resize", moves.revert_resize),
    "setDedicatedHosts": ServerAction(
        SET_DEDICATED_HOSTS, f"{_SERVERS}:set_dedicated_hosts", shelving.set_dedicated_hosts
    ),
    "shelve": ServerAction(NOT_LOOKED_AT, f"{_SHELVES}:shelve", shelving.shelve),
    "shelveOffload": ServerAction(
        NOT_LOOKED_AT, f"{_SHELVES}:shelve_offload", shelving.shelve_offload
    ),
    "suspend": ServerAction(NOT_LOOKED_AT, f"{_SUSPENDS}:suspend", power.suspend),
    "unlock": ServerAction(NOT_LOOKED_AT, f"{_LOCKS}:unlock", administration.unlock),
    "unpause": ServerAction(NOT_LOOKED_AT, f"{_PAUSES}:unpause", power.unpause),
    "unshelve": ServerAction(UNSHELVE, f"{_SHELVES}:unshelve", shelving.unshelve),
}
NOT_HERE = frozenset(
    {
        "addFixedIp",
        "addFloatingIp",
        "addSecurityGroup",
        "changePassword",
        "createBackup",
        "createImage",
        "injectNetworkInfo",
        "os-getConsoleOutput",
        "os-getRDPConsole",
        "os-getSPICEConsole",
        "os-getSerialConsole",
        "os-getVNCConsole",
        "rebuild",
        "removeFixedIp",
        "removeFloatingIp",
        "removeSecurityGroup",
        "rescue",
        "resetNetwork",
        "restore",
        "trigger_crash_dump",
        "unrescue",
    }
)
"""Actions of the API that nothing here carries out."""

BODY: Schema = {
    "type": "object",
    "properties": {name: action.schema for name, action in ACTIONS.items()},
    # What is no action at all is refused in words, when the server is known.
    "additionalProperties": {},
    "minProperties": 1,
    "maxProperties": 1,
}


async def act(call: Call) -> Answer:
    """Do something to a server; the body's one key names the action."""
    server = await found(call)
    ((name, wanted),) = call.body.items()
    if name in NOT_HERE:
        raise Invalid(f"The action {name} is not available here.")
    action = ACTIONS.get(name)
    if action is None:
        raise Invalid(f"There is no such action: {name[:60]}")
    acting = Acting(call, server, wanted)
    call.demand(action.rule, **acting.owner)
    try:
        return await action.run(acting)
    except Conflict as error:
        raise in_words(error, action.word or name) from error
