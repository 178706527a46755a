"""The measured service: the real program, with one more route that does nothing.

It takes the program's commands; the workers of a service with several are this program too.
The empty route passes through the whole shell as every other does (token, version, policy,
body, schema, answer, metrics, log), under the policy rule of a boot. The additional cost of a
boot is that of deciding, claiming and committing.
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
    """The same API with the empty route."""
    return replace(api, routes=(*api.routes, EMPTY))


if __name__ == "__main__":
    # The list exists once in the program, which reads it when it starts to serve.
    apis = cast(dict[str, Api], tables.APIS)
    apis["compute"] = with_empty_route(apis["compute"])
    programs.PROGRAM = (sys.executable, "-m", "benchmarks.served")
    raise SystemExit(main())
