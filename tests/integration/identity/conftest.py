"""Identity, on stores of every backend."""

from __future__ import annotations

from tests.support.stores import opened, store

__all__ = ["opened", "store"]
