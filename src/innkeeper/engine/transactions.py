"""The type of an open transaction, for handlers that submit work to the engine.

Work is a function that gets a transaction. It passes the transaction on to a system, and does
nothing else with it, because the store alone has SQL.
"""

from __future__ import annotations

from innkeeper.store.transactions import Tx

__all__ = ["Tx"]
