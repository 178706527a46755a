"""The results of work orders from agents, and the settings for applying these results."""

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

    ``is_late`` means that the order timed out. The agent may or may not have carried out the order.
    Only the service sets ``is_late``.
    """

    order_id: int
    is_ok: bool
    fault: str = ""
    is_late: bool = False

    @property
    def message(self) -> str:
        """The reason why the order failed."""
        return self.fault or UNEXPLAINED


def owner_message(order: OpenOrder, result: Result) -> str:
    """Return the message for the server's owner about a failed order.

    The message does not name a host or quote the agent. Administrators find the agent's message in
    the order.
    """
    if result.is_late:
        return f"A host did not confirm the order '{order.kind}' in time."
    return f"A host could not carry out the order '{order.kind}'."


@dataclass(frozen=True, slots=True)
class ResultSettings:
    """The settings for applying results."""

    service_down_time_s: float = 60.0
    build_attempts_max: int = 3
    shelved_offload_time: int = 0

    @classmethod
    def of(cls, scheduling: Scheduling, computing: Computing) -> ResultSettings:
        """Return the settings for applying results, from the settings of the service."""
        return cls(
            service_down_time_s=computing.service_down_time_s,
            build_attempts_max=scheduling.build_attempts_max,
            shelved_offload_time=computing.shelved_offload_time,
        )


Ended = tuple[OpenOrder, Result]
"""An order that was pending, and its result."""
Apply = Callable[[Tx, Sequence[Ended], ResultSettings, datetime], None]
"""A function that applies results of orders of one kind, with at most one result for each server.
"""
ApplyOne = Callable[[Tx, OpenOrder, Result, datetime], None]


def one_by_one(apply: ApplyOne) -> Apply:
    """Return a function that calls ``apply`` for each result."""

    def apply_all(tx: Tx, reported: Sequence[Ended], _: ResultSettings, now: datetime) -> None:
        for order, result in reported:
            apply(tx, order, result, now)

    return apply_all
