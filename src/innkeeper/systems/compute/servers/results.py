"""Results of work orders, as agents report them, and the settings for their consequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx

UNEXPLAINED = "The agent failed and gave no reason."


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an order.

    ``is_late`` stands for an agent that reported nothing in time: the order may have been
    carried out, or not. No agent reports it.
    """

    order_id: int
    is_ok: bool
    fault: str = ""
    is_late: bool = False

    @property
    def message(self) -> str:
        """Why the order failed."""
        return self.fault or UNEXPLAINED


def owner_message(order: OpenOrder, result: Result) -> str:
    """The message about a failed order for the server's owner.

    It names no host and does not quote the agent. Administrators find the agent's message with
    the order.
    """
    if result.is_late:
        return f"A host did not confirm the {order.kind} in time."
    return f"A host failed at the {order.kind}."


@dataclass(frozen=True, slots=True)
class ResultSettings:
    """The settings that decide what follows from results."""

    service_down_time_s: float = 60.0
    build_attempts_max: int = 3
    shelved_offload_time: int = 0

    @classmethod
    def of(cls, scheduling: Scheduling, computing: Computing) -> ResultSettings:
        """Take them from the settings."""
        return cls(
            service_down_time_s=computing.service_down_time_s,
            build_attempts_max=scheduling.build_attempts_max,
            shelved_offload_time=computing.shelved_offload_time,
        )


Ended = tuple[OpenOrder, Result]
"""An order that was pending until now, and its result."""
Apply = Callable[[Tx, Sequence[Ended], ResultSettings, datetime], None]
"""Applies the results of orders of one kind, at most one for each server."""
ApplyOne = Callable[[Tx, OpenOrder, Result, datetime], None]


def one_by_one(apply: ApplyOne) -> Apply:
    """Apply each result by itself."""

    def apply_all(tx: Tx, reported: Sequence[Ended], _: ResultSettings, now: datetime) -> None:
        for order, result in reported:
            apply(tx, order, result, now)

    return apply_all
