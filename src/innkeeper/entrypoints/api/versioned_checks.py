"""The checks and conversions of a route's requests at one version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.microversions import Schema, passage, spans
from innkeeper.entrypoints.api.routing import Answer, Api, Call, Route
from innkeeper.entrypoints.api.validation import Validator


class Checks:
    """The validators, upgrades and downgrades of a route at one version, built at first use."""

    def __init__(self, api: Api, route: Route, version: Version) -> None:
        steps = api.versions.after(version) if api.versions else []
        changes = passage(steps, route.method, route.path, route.body, route.query)
        self.ups, self.downs = changes.ups, changes.downs
        self.body = _validator(api, changes.body, api.body_refusal)
        self.query = _validator(api, changes.query, api.query_refusal)
        # The fast decoder skips the upgrades, so use it only for the newest version and for
        # versions since ``decode_since``.
        is_known = changes.body is route.body or (
            route.decode_since is not None and spans(route.decode_since, None, version)
        )
        self.decode = route.decode if is_known and not changes.ups else None

    async def handled(self, call: Call) -> Answer:
        """Run the route's handler, and return the answer in the form of the version."""
        answer = await call.route.handler(call)
        for down in self.downs:
            down(answer, call)
        return answer


def _validator(api: Api, schema: Schema | None, wording: Callable[[Any], str]) -> Validator | None:
    if schema is None:
        return None
    return Validator(schema, wording, most_telling=api.has_most_telling_complaints)
