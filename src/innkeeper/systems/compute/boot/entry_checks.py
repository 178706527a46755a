"""Check whether boot requests may use their build plan entries, with one lookup for a batch.

A batch is the requests that one transaction handles together.

Always true: the checks use the database state from before the batch. The caller must handle the
case that several requests of a batch use the same entry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import Destination, EntryBoot
from innkeeper.store.queries.compute import hosts, servers
from innkeeper.store.transactions import Tx, guards_of
from innkeeper.systems.compute.boot.entries import EntryExpired, EntryStale, EntryUsed
from innkeeper.systems.zones import used_entries


class EntryChecks:
    """Checks the build plan entries of one batch of boot requests."""

    def __init__(self, tx: Tx, requests: Sequence[BootRequest]) -> None:
        self._known: Collection[str] = ()
        self._used: Mapping[str, str | None] = {}
        self._providers: Mapping[str, str] = {}
        if any(each.destination is not None or each.entries for each in requests):
            self._look_up(tx, requests)

    def _look_up(self, tx: Tx, requests: Sequence[BootRequest]) -> None:
        named = [each for each in requests if each.destination is not None]
        places = [each.destination for each in named if each.destination is not None]
        together = [each for request in requests for each in request.entries]
        places += [each.destination for each in together]
        of_parents = [each for each in named if each.entry_id is not None]
        given = [ServerId(each.entry_id) for each in of_parents if each.entry_id is not None]
        made = [each.destination.server_id for each in of_parents if each.destination is not None]
        given += [ServerId(each.entry_id) for each in together]
        made += [each.server_id for each in together]
        self._known = servers.ever_known(tx, {*given, *(each.server_id for each in places)})
        is_guarded = bool(given) and guards_of(tx).single_use
        self._used = used_entries.used(tx, {*given, *made}) if is_guarded else {}
        self._providers = hosts.provider_uuids_by_name(tx, {each.host for each in places})

    def check(self, request: BootRequest) -> None:
        """Raise an error if the request may not use its build plan entry.

        Raises :class:`EntryUsed` for a used entry and :class:`EntryExpired` for an expired entry.
        Raises :class:`EntryStale` if the entry's host no longer exists.
        """
        if request.destination is not None:
            entry_id, until = request.entry_id, request.expires_at
            self._check(request.destination, entry_id, until, request.now)

    def check_entry(self, entry: EntryBoot, now: datetime) -> None:
        """Raise the errors of :meth:`check` for one of the entries of a request."""
        self._check(entry.destination, entry.entry_id, entry.expires_at, now)

    def _check(
        self,
        destination: Destination,
        entry_id: str | None,
        expires_at: datetime | None,
        now: datetime,
    ) -> None:
        # This check comes before the check of the expiry. If the order were reversed, the error
        # would tell a client with a used entry to ask for another plan. The client would then boot
        # a second server.
        if destination.server_id in self._known:
            raise EntryUsed(destination.server_id)
        if entry_id is not None:
            is_used = entry_id in self._used or destination.server_id in self._used
            if is_used or entry_id in self._known:
                raise EntryUsed(self._used.get(entry_id) or entry_id)
        if expires_at is not None and now >= expires_at:
            raise EntryExpired(expires_at)
        if self._providers.get(destination.host) != destination.provider_uuid:
            raise EntryStale(f"Host {destination.host} no longer exists.")
