"""The name of an open transaction, for what hands work to the engine.

Work is a function of a transaction. It passes the transaction on to a system, and never asks
anything of it by itself: only the store speaks SQL.
"""

from __future__ import annotations

from innkeeper.store.transactions import Tx

__all__ = ["Tx"]
