"""What the writer thread can be asked to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from innkeeper.domain.errors import Refusal
from innkeeper.store.transactions import Tx

T = TypeVar("T")

Together = Callable[[Tx, Sequence[T]], Sequence[Refusal | None]]
"""Writes many items in one transaction, and gives for each why it was refused, if it was. Of
what it refuses it has written nothing; if it raises, the transaction ends."""
