"""One serving process: its parts, made from the settings and put together."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from litestar import Litestar

from innkeeper.domain.slices import Settings
from innkeeper.entrypoints.api import app
from innkeeper.entrypoints.api.decisions import DecisionThread
from innkeeper.entrypoints.api.identity import opening
from innkeeper.entrypoints.api.policy import OsloPolicy
from innkeeper.entrypoints.api.readers import ReaderThreads
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.site import Site
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.entrypoints.worker.loop import Task, WorkerThread
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute import work
from innkeeper.systems.compute.desk import BootDesk
from innkeeper.systems.identity.tokens import Signer
from innkeeper.systems.placement import feed
from innkeeper.wiring.sources import RandomIds, now
from innkeeper.wiring.stores import open_store

SWEEP_PERIOD_S = 10.0
PRUNE_PERIOD_S = 60.0
TASK_TIMEOUT_S = 60.0
"""How long a periodic task waits for its commit; then it tries again at its next turn."""


class Service:
    """One serving process, whole: made, started, asked, stopped."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = open_store(settings)
        self.ids = RandomIds()
        self.desk = BootDesk(settings.scheduling, settings.computing)
        self.decisions = DecisionThread(self.store, self.desk)
        self.readers = ReaderThreads(self.store, settings.serving.reader_threads)
        apis = served_apis(settings)
        overrides = settings.authenticating.policy_file
        policy = OsloPolicy(
            [rule for api in apis.values() for rule in api.rules],
            None if overrides is None else Path(overrides),
        )
        self.signer: Signer | None = None
        if settings.authenticating.auth == "builtin":
            self.signer = opening.signer(self.store, secrets.token_bytes, now())
        self.site = Site(
            settings=settings,
            readers=self.readers,
            decisions=self.decisions,
            policy=policy,
            authenticator=opening.authenticator(settings, self.signer, self.readers, now),
            clock=now,
            ids=self.ids,
            services=opening.services(settings, apis),
            signer=self.signer,
        )
        self.store.listen(self.site.bells.ring)
        self.app: Litestar = app.make(self.site, apis, self.why_not_ready)
        self.worker = WorkerThread(self._tasks(), time.monotonic)

    def prepare_logins(self, address: str) -> Path | None:
        """Make the logins that must be there; gives the administrator's if it is new.

        ``address`` is where this process listens. To be called before requests are served.
        """
        if self.signer is None:
            return None
        return opening.prepare_logins(
            self.store, self.settings, address, self.ids, secrets.token_urlsafe, now()
        )

    def agent_token(self) -> str:
        """A token for the agent that this process starts beside itself.

        In the ``keystone`` mode there is none to give: Keystone alone makes tokens.
        """
        assert self.settings.authenticating.auth != "keystone"
        if self.signer is None:
            return "admin"
        return opening.agent_token(self.store, self.signer, self.ids, now())

    def _tasks(self) -> list[Task]:
        """What is done again and again, whether anybody asks or not."""
        timeout_s = self.settings.computing.order_timeout_s

        def sweep(tx: Tx) -> int:
            return work.sweep(tx, timeout_s, now())

        def prune(tx: Tx) -> int:
            return feed.prune(tx, now())

        return [
            Task("late_orders", SWEEP_PERIOD_S, self._written(sweep)),
            Task("old_changes", PRUNE_PERIOD_S, self._written(prune)),
        ]

    def _written(self, act: Callable[[Tx], int]) -> Callable[[], int]:
        return lambda: self.decisions.write_now(act, TASK_TIMEOUT_S)

    def start(self) -> None:
        """Load the host table and begin to decide."""
        with self.store.read() as tx:
            self.desk.load(tx)
        self.decisions.start()
        self.worker.start()

    def stop(self) -> None:
        """Finish what was begun, then let go of everything."""
        self.worker.stop(self.settings.serving.shutdown_grace_s)
        self.decisions.stop(self.settings.serving.shutdown_grace_s)
        self.readers.stop()
        self.site.passwords.stop()
        self.store.dispose()

    def why_not_ready(self) -> str | None:
        """The reason why requests cannot be served; ``None`` if they can."""
        return None if self.decisions.is_alive else "decisions are not being made"


def served_apis(settings: Settings) -> dict[str, Api]:
    """The APIs to serve, by name. Beside a Keystone there is no Identity API of our own."""
    is_ours = settings.authenticating.auth != "keystone"
    return {
        name: APIS[name]
        for name in settings.serving.apis
        if name in APIS and (is_ours or name != "identity")
    }
