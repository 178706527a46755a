"""The type of an open transaction, for handlers that submit work to the engine.

Work is a function of a transaction. The function only passes the transaction on to a system,
because only the store has SQL.
"""

from __future__ import annotations

from innkeeper.store.transactions import Tx

__all__ = ["Tx"]
