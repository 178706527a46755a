"""The measured service: the real program, with an additional route that does nothing.

It has the program's commands, and its workers are also this program. A request to the empty route
passes through the same steps as any other (token, version, policy, body, schema, response, metrics,
log), under the policy rule of a boot. A boot costs more only because it also decides, claims and
commits.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import cast

from innkeeper import programs
from innkeeper.entrypoints.api import tables
from innkeeper.entrypoints.api.routing import Answer, Api, Call, Route
from innkeeper.main import main

EMPTY_PATH = "/v2.1/benchmark-empty"
(RULE,) = (
    rule for rule in tables.APIS["compute"].rules if rule.name == "os_compute_api:servers:create"
)


async def _answer(call: Call) -> Answer:
    assert call.body == {}
    return Answer(202, {})


EMPTY = Route(
    method="POST",
    path=EMPTY_PATH,
    handler=_answer,
    rule=RULE,
    summary="Do nothing.",
    body={"type": "object", "additionalProperties": False},
    # It writes nothing, so no process forwards it to the leader.
    is_read=True,
)


def with_empty_route(api: Api) -> Api:
    """Return the same API with the empty route."""
    return replace(api, routes=(*api.routes, EMPTY))


if __name__ == "__main__":
    # The program has a single list of APIs, and reads it when it starts to serve.
    apis = cast(dict[str, Api], tables.APIS)
    apis["compute"] = with_empty_route(apis["compute"])
    programs.PROGRAM = (sys.executable, "-m", "benchmarks.served")
    raise SystemExit(main())
