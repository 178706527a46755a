"""The type of an open transaction, for handlers that submit work to the engine.

Work is a function that gets a transaction. It only passes the transaction on to the code under
``systems``, because only the store contains SQL.
"""

from __future__ import annotations

from innkeeper.store.transactions import Tx

__all__ = ["Tx"]
