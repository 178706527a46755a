"""Asks the operator's external check about leases, before they are created or changed.

Always true: the check is asked outside of any transaction, so that other writers need not wait for
its answer. First, a transaction that is rolled back chooses hosts, and the check is asked about
them. Then a second transaction chooses hosts again, and writes the lease.

The lease may get other hosts than those about which the check was asked, because other requests may
be served between the two transactions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from innkeeper.clients.lease_checks import CheckAnswer, CheckVerdict, LeaseCheckClient
from innkeeper.domain.errors import Invalid, Refusal
from innkeeper.domain.leases import Lease
from innkeeper.domain.slices import Leasing
from innkeeper.engine.commands import Deciding
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import held_hosts
from innkeeper.systems.leases.held_hosts import HeldHost

DENIED = "External service enforcement filter denied the request."
SILENT = f"{DENIED} The service gave no usable answer."
THREADS = 8
WAIT_S = 1.0
"""The maximum time in seconds for which a question waits for a thread, in addition to the time for
the answer."""


class ExternalCheck:
    """Asks the external check in the settings, in threads of its own."""

    def __init__(self, client: LeaseCheckClient, *, deadline_s: float, fails_open: bool) -> None:
        self._client = client
        self._deadline_s = deadline_s
        self._fails_open = fails_open
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="lease-check")

    async def demand(self, path: str, body: Mapping[str, Any]) -> None:
        """Ask the check about a lease. Raises :class:`Invalid` if the check denies the lease.

        If the check gives no usable answer, a setting decides whether the lease is denied.
        """
        loop = asyncio.get_running_loop()
        try:
            answer = await asyncio.wait_for(
                loop.run_in_executor(self._pool, self._client.ask, path, body), self._deadline_s
            )
        except TimeoutError:
            answer = CheckAnswer(CheckVerdict.UNKNOWN)
        if answer.verdict == CheckVerdict.DENIED:
            raise Invalid(answer.message or DENIED)
        if answer.verdict == CheckVerdict.UNKNOWN and not self._fails_open:
            raise Invalid(SILENT)


def connect(leasing: Leasing) -> ExternalCheck | None:
    """Return the external check in the settings, or ``None`` if they have no check."""
    if leasing.lease_check_url is None:
        return None
    client = LeaseCheckClient(
        leasing.lease_check_url,
        token=leasing.lease_check_token,
        timeout_s=leasing.lease_check_timeout_s,
        clock=time.monotonic,
    )
    return ExternalCheck(
        client,
        deadline_s=leasing.lease_check_timeout_s + WAIT_S,
        fails_open=leasing.lease_check_fails_open,
    )


class _Planned(Refusal):
    """An exception that rolls back a transaction that only plans leases."""

    def __init__(self, leases: Sequence[tuple[Lease, Mapping[str, list[HeldHost]]]]) -> None:
        super().__init__("Nothing was changed, because this was a plan.")
        self.leases = leases


async def ask_first(
    call: Call,
    path: str,
    work: Deciding[Sequence[Lease]],
    current: Callable[[Tx], Lease] | None = None,
) -> None:
    """Ask the external check about each lease that ``work`` would write, if there is a check.

    If ``work`` changes a lease, ``current`` reads the lease before the change. Raises the errors of
    ``work``, and :class:`Invalid` if the check denies a lease.
    """
    check = call.site.lease_check
    if check is None:
        return

    def plan(tx: Tx, decision: DecisionContext) -> None:
        found = work(tx, decision)
        raise _Planned([(each, held_hosts.by_reservation(tx, each)) for each in found])

    body: dict[str, Any] = {"context": _context(call)}
    if current is not None:
        present = await call.read(_with_hosts(current))
        body["current_lease"] = held_hosts.shown(*present, call.site.resource_types)
    try:
        await call.decide(plan, WHOLE_HOSTS)
    except _Planned as planned:
        types = call.site.resource_types
        questions = [held_hosts.shown(lease, held, types) for lease, held in planned.leases]
        for each in questions:
            await check.demand(path, {**body, "lease": each})


def _with_hosts(
    current: Callable[[Tx], Lease],
) -> Callable[[Tx], tuple[Lease, Mapping[str, list[HeldHost]]]]:
    def read(tx: Tx) -> tuple[Lease, Mapping[str, list[HeldHost]]]:
        lease = current(tx)
        return lease, held_hosts.by_reservation(tx, lease)

    return read


def _context(call: Call) -> dict[str, Any]:
    settings = call.site.settings
    auth_url = settings.authenticating.keystone_url
    if auth_url is None and "identity" in settings.serving.apis:
        origin = call.address.removesuffix(call.mount)
        auth_url = f"{origin}{settings.serving.identity_prefix}/v3"
    return {
        "user_id": call.context.user_id,
        "project_id": call.context.project_id,
        "auth_url": auth_url,
        "region_name": settings.authenticating.region_name,
    }
