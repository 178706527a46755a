"""This module has the table of all actions on servers, and the handler of their shared route.

Always true: the body's only key names the action. The action's rule is checked for the server's
project. Callers that may not see the server get a 404.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Conflict, Invalid
from innkeeper.entrypoints.api.compute.servers import administration, moves, shelving
from innkeeper.entrypoints.api.compute.servers.access import found
from innkeeper.entrypoints.api.compute.servers.acting import (
    Acting,
    ServerAction,
    in_words,
    without_arguments,
)
from innkeeper.entrypoints.api.compute.servers.action_schemas import (
    EVACUATE,
    IGNORED,
    LOCK,
    MIGRATE,
    MIGRATE_LIVE,
    REBOOT,
    RESET_STATE,
    RESIZE,
    SET_DEDICATED_HOSTS,
    UNSHELVE,
)
from innkeeper.entrypoints.api.microversions import Schema
from innkeeper.entrypoints.api.request_checks import unknown_action
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.moves import resizing
from innkeeper.systems.compute.moves import shelving as shelving_rules
from innkeeper.systems.compute.servers import power

_SERVERS = "os_compute_api:servers"
_LOCKS = "os_compute_api:os-lock-server"
_MIGRATES = "os_compute_api:os-migrate-server"
_SHELVES = "os_compute_api:os-shelve"
_PAUSES = "os_compute_api:os-pause-server"
_SUSPENDS = "os_compute_api:os-suspend-server"


async def _reboot(acting: Acting) -> Answer:
    return await acting.write(power.reboot, is_hard=acting.arguments["type"].upper() == "HARD")


ACTIONS: Mapping[str, ServerAction] = {
    "confirmResize": without_arguments(f"{_SERVERS}:confirm_resize", resizing.confirm),
    "evacuate": ServerAction(EVACUATE, "os_compute_api:os-evacuate", moves.evacuate),
    "forceDelete": ServerAction(
        IGNORED, "os_compute_api:os-deferred-delete:force", administration.force_delete
    ),
    "lock": ServerAction(LOCK, f"{_LOCKS}:lock", administration.lock),
    "migrate": ServerAction(MIGRATE, f"{_MIGRATES}:migrate", moves.migrate),
    "os-migrateLive": ServerAction(MIGRATE_LIVE, f"{_MIGRATES}:migrate_live", moves.migrate_live),
    "os-resetState": ServerAction(
        RESET_STATE, "os_compute_api:os-admin-actions:reset_state", administration.reset_state
    ),
    "os-start": without_arguments(f"{_SERVERS}:start", power.start, word="start"),
    "os-stop": without_arguments(f"{_SERVERS}:stop", power.stop, word="stop"),
    "pause": without_arguments(f"{_PAUSES}:pause", power.pause),
    "reboot": ServerAction(REBOOT, f"{_SERVERS}:reboot", _reboot),
    "resize": ServerAction(RESIZE, f"{_SERVERS}:resize", moves.resize),
    "resume": without_arguments(f"{_SUSPENDS}:resume", power.resume),
    "revertResize": without_arguments(f"{_SERVERS}:revert_resize", resizing.revert),
    "setDedicatedHosts": ServerAction(
        SET_DEDICATED_HOSTS, f"{_SERVERS}:set_dedicated_hosts", shelving.set_dedicated_hosts
    ),
    "shelve": ServerAction(IGNORED, f"{_SHELVES}:shelve", shelving.shelve),
    "shelveOffload": without_arguments(f"{_SHELVES}:shelve_offload", shelving_rules.offload),
    "suspend": without_arguments(f"{_SUSPENDS}:suspend", power.suspend),
    "unlock": ServerAction(IGNORED, f"{_LOCKS}:unlock", administration.unlock),
    "unpause": without_arguments(f"{_PAUSES}:unpause", power.unpause),
    "unshelve": ServerAction(UNSHELVE, f"{_SHELVES}:unshelve", shelving.unshelve),
}
UNSUPPORTED = frozenset(
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
"""Actions of the Compute API that are not supported here."""

BODY: Schema = {
    "type": "object",
    "properties": {name: action.schema for name, action in ACTIONS.items()},
    # The handler rejects unknown actions, but only after it has found the server.
    "additionalProperties": {},
    "minProperties": 1,
    "maxProperties": 1,
}


def rule_of(body: Any) -> str | None:
    """Return the policy rule of the action that a body names.

    Returns ``None`` for an unknown action.
    """
    name = next(iter(body)) if isinstance(body, Mapping) and len(body) == 1 else None
    action = ACTIONS.get(name) if isinstance(name, str) else None
    return None if action is None else action.rule


async def act(call: Call) -> Answer:
    """Run an action on a server. The body's only key names the action."""
    server = await found(call)
    ((name, arguments),) = call.body.items()
    if name in UNSUPPORTED:
        raise Invalid(f"The action {name} is not supported.")
    action = ACTIONS.get(name)
    if action is None:
        raise unknown_action(name[:60])
    acting = Acting(call, server, arguments)
    call.demand(action.rule, **acting.owner)
    try:
        return await action.run(acting)
    except Conflict as error:
        raise in_words(error, action.word or name) from error
