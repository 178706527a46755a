"""Collects what the API shows about pclouds, to check that it reveals nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from innkeeper.domain.pclouds import BillingPeriod, Pcloud
from innkeeper.entrypoints.api.pclouds import hosts as host_views
from innkeeper.entrypoints.api.pclouds import pclouds as pcloud_views
from innkeeper.entrypoints.api.pclouds import records as record_views
from innkeeper.store.transactions import Tx
from innkeeper.systems.pclouds import hosts, pclouds
from tests.support.pcloud_operator import LIST_MAX, PcloudOperator
from tests.support.worlds import World


class Looker:
    """A caller from a project, with the facts that views need."""

    def __init__(self, project_id: str) -> None:
        self.project_id = project_id

    @property
    def context(self) -> Looker:
        """A context that knows nothing but the project."""
        return self

    def allows(self, _: str, *, project_id: str) -> bool:
        """Allow projects everything about their own resources."""
        return project_id == self.project_id


def shown(operator: PcloudOperator, projects: Sequence[str]) -> str:
    """Return everything that the API shows these projects about pclouds, as one text."""
    context = operator.context()

    def look(tx: Tx) -> list[Any]:
        reported: list[Any] = []
        for pcloud in pclouds.page(tx, viewer=None, after=None, limit=LIST_MAX):
            mine = hosts.page(tx, pcloud)
            reported.append(host_views._shown(tx, mine, context))
            reported.append([_told(each) for each in _actions(tx, pcloud)])
            for project_id in projects:
                # A view needs only the caller from a request.
                call = cast("Any", Looker(project_id))
                reported.append(pcloud_views._one_shown(tx, call, pcloud))
        return reported

    return json.dumps(operator.cloud.read(look), default=str)


def shown_billing_periods(operator: PcloudOperator, seen: World) -> str:
    """Return the billing periods of hosts as the API shows them."""
    reported = [
        BillingPeriod(**{key: each[key] for key in BillingPeriod.__slots__})
        for each in seen.billing_periods
    ]
    now = operator.movers.now
    return json.dumps([record_views._shown_period(each, now, now) for each in reported])


def _actions(tx: Tx, pcloud: Pcloud) -> list[Any]:
    return list(pclouds.actions(tx, pcloud.uuid, limit=LIST_MAX))


def _told(action: Any) -> list[Any]:
    return [getattr(action, name) for name in action.__slots__]
