"""Lists of what this service does not keep, which stock clients ask for on their way.

They are empty because there is nothing in them: such things cannot be created here either.
"""

from __future__ import annotations

from innkeeper.entrypoints.api.routing import Answer, Call


async def aggregates(call: Call) -> Answer:
    """No host aggregates; ``openstack hypervisor show`` looks for a host's."""
    return Answer(200, {"aggregates": []})


async def server_groups(call: Call) -> Answer:
    """No server groups."""
    return Answer(200, {"server_groups": []})
