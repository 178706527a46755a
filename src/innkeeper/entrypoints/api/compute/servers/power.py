"""Actions that keep a server where it is: started, stopped, rebooted, paused, suspended."""

from __future__ import annotations

from innkeeper.entrypoints.api.compute.servers.acting import Acting
from innkeeper.entrypoints.api.routing import Answer
from innkeeper.systems.compute.servers import power


async def start(acting: Acting) -> Answer:
    """Start a server that is off."""
    return await acting.write(power.start)


async def stop(acting: Acting) -> Answer:
    """Shut a server down."""
    return await acting.write(power.stop)


async def reboot(acting: Acting) -> Answer:
    """Start a server again, by asking it or by pulling the plug."""
    is_hard = acting.wanted["type"].upper() == "HARD"
    return await acting.write(power.reboot, is_hard=is_hard)


async def pause(acting: Acting) -> Answer:
    """Let a server stand still, in memory."""
    return await acting.write(power.pause)


async def unpause(acting: Acting) -> Answer:
    """Let a paused server go on."""
    return await acting.write(power.unpause)


async def suspend(acting: Acting) -> Answer:
    """Put a server's memory onto its disk."""
    return await acting.write(power.suspend)


async def resume(acting: Acting) -> Answer:
    """Let a suspended server go on."""
    return await acting.write(power.resume)
