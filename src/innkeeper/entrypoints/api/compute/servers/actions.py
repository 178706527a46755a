"""What can be done to a server: locked and unlocked; and what it has none of here."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.compute import Locker, Server
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.servers.access import OVERRIDE, found
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute import servers

LOCK = "os_compute_api:os-lock-server:lock"
UNLOCK = "os_compute_api:os-lock-server:unlock"
NOT_YET = frozenset(
    {
        "addFloatingIp",
        "addSecurityGroup",
        "changePassword",
        "confirmResize",
        "createBackup",
        "createImage",
        "evacuate",
        "forceDelete",
        "injectNetworkInfo",
        "migrate",
        "os-getConsoleOutput",
        "os-getSPICEConsole",
        "os-getVNCConsole",
        "os-migrateLive",
        "os-resetState",
        "os-start",
        "os-stop",
        "pause",
        "reboot",
        "rebuild",
        "removeSecurityGroup",
        "rescue",
        "resetNetwork",
        "resize",
        "restore",
        "resume",
        "revertResize",
        "shelve",
        "shelveOffload",
        "suspend",
        "unpause",
        "unrescue",
        "unshelve",
    }
)
"""Actions of the API that nothing here carries out."""


async def act(call: Call) -> Answer:
    """Lock or unlock a server; the body's one key names the action."""
    server = await found(call)
    ((action, wanted),) = call.body.items()
    if action == "lock":
        await _lock(call, server, wanted)
    elif action == "unlock":
        await _unlock(call, server)
    elif action in NOT_YET:
        raise Invalid(f"The action {action} is not available here yet.")
    else:
        raise Invalid(f"There is no such action: {action[:60]}")
    return Answer(202)


async def _lock(call: Call, server: Server, wanted: Any) -> None:
    owner = {"project_id": server.project_id, "user_id": server.user_id}
    call.demand(LOCK, **owner)
    is_owner = call.context.project_id == server.project_id
    locked_by = Locker.OWNER if is_owner else Locker.ADMIN
    reason = (wanted or {}).get("locked_reason")
    await call.write(lambda tx: servers.lock(tx, server.uuid, locked_by, reason, call.now))


async def _unlock(call: Call, server: Server) -> None:
    owner = {"project_id": server.project_id, "user_id": server.user_id}
    call.demand(UNLOCK, **owner)
    override = call.allows(OVERRIDE, **owner)
    await call.write(
        lambda tx: servers.unlock(tx, server.uuid, call.now, may_override=override)
    )


async def addresses(call: Call) -> Answer:
    """No addresses: networks are not managed here."""
    await found(call)
    return Answer(200, {"addresses": {}})


async def volumes(call: Call) -> Answer:
    """No volumes: there is no block storage yet."""
    await found(call)
    return Answer(200, {"volumeAttachments": []})


async def interfaces(call: Call) -> Answer:
    """No interfaces: networks are not managed here."""
    await found(call)
    return Answer(200, {"interfaceAttachments": []})


async def security_groups(call: Call) -> Answer:
    """No security groups: networks are not managed here."""
    await found(call)
    return Answer(200, {"security_groups": []})
