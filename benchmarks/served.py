"""The service that is measured: the real program, with one route more that does nothing.

It takes the program's commands; the workers of a service with several are this program too.
The empty route goes through the whole shell as every other does (token, version, policy, body,
schema, answer, metrics, log), under the same rule of policy as booting a server. What a boot
costs beyond it is the price of deciding, claiming and making durable.
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
)


def with_empty_route(api: Api) -> Api:
    """The same API and the route that does nothing."""
    return replace(api, routes=(*api.routes, EMPTY))


if __name__ == "__main__":
    # The list is one for the whole program, and read when it starts to serve.
    apis = cast(dict[str, Api], tables.APIS)
    apis["compute"] = with_empty_route(apis["compute"])
    programs.PROGRAM = (sys.executable, "-m", "benchmarks.served")
    raise SystemExit(main())
