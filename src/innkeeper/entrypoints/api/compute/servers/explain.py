"""Where a boot would go now, or why nowhere: an answer of Innkeeper's own.

Always true: nothing is claimed, and nobody but an administrator reads names of hosts.
"""

from __future__ import annotations

from typing import Any

from innkeeper.domain.compute import Explained
from innkeeper.entrypoints.api.compute.servers.bodies import Asked, asked, boot_request
from innkeeper.entrypoints.api.routing import Answer, Call

HOSTS_RULE = "os_compute_api:os-explain:hosts"


async def explain(call: Call) -> Answer:
    """Explain a body of ``POST /servers``; what would refuse the boot refuses this too."""
    wish = call.body if isinstance(call.body, Asked) else asked(call.body)
    told: Explained = await call.site.decisions.explain(boot_request(call, wish))
    rows = zip(told.removed, told.missing, strict=True)
    shown: dict[str, Any] = {
        "hosts": told.hosts,
        "removed": [
            {"filter": name, "removed": count, "reason": reason, "missing": missing}
            for (name, count, reason), missing in rows
        ],
        "servers": len(told.chosen),
        "fault": told.fault,
    }
    if call.allows(HOSTS_RULE, project_id=call.context.project_id):
        shown["chosen"] = [dict(each) for each in told.chosen]
        shown["best"] = [dict(each) for each in told.best]
    return Answer(200, {"explanation": shown})
