"""The type of an open transaction, for handlers that submit work to the engine.

Work is a function of a transaction, which it only passes on to a system: only the store has SQL.
"""

from __future__ import annotations

from innkeeper.store.transactions import Tx

__all__ = ["Tx"]
