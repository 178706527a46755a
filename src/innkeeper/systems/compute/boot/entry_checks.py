"""Check that boots may use their entries of build plans, with one lookup for a whole batch.

Always true: the checks use the state of the transaction before any request of the batch is written.
If several requests of a batch use the same entry, the caller must handle this.
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
    """The facts about the entries of a batch of boot requests."""

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
        """Raise an error unless the request may use its entry, if it has one.

        Raises :class:`EntryUsed`, :class:`EntryExpired`, and :class:`EntryStale` if the host no
        longer exists.
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
        # This check comes before the check of the expiry. Otherwise a client with a used entry
        # would be told to ask for another plan, and would boot a second server.
        if destination.server_id in self._known:
            raise EntryUsed(destination.server_id)
        if entry_id is not None:
            is_used = entry_id in self._used or destination.server_id in self._used
            if is_used or entry_id in self._known:
                raise EntryUsed(self._used.get(entry_id) or entry_id)
        if expires_at is not None and now >= expires_at:
            raise EntryExpired(expires_at)
        if self._providers.get(destination.host) != destination.provider_uuid:
            raise EntryStale(f"The host {destination.host} no longer exists.")
