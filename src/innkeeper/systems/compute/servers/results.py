"""What agents say of their orders, and the terms on which that is followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.slices import Computing, Scheduling
from innkeeper.store.queries.compute.orders import OpenOrder
from innkeeper.store.transactions import Tx

UNEXPLAINED = "The agent failed and did not say why."


@dataclass(frozen=True, slots=True)
class Result:
    """What an agent says of an order.

    ``is_late`` is said by nobody: it stands for an agent that did not say anything in time, so
    that the order may have been carried out, or not.
    """

    order_id: int
    is_ok: bool
    fault: str = ""
    is_late: bool = False

    @property
    def message(self) -> str:
        """Why it did not work."""
        return self.fault or UNEXPLAINED


def told(order: OpenOrder, result: Result) -> str:
    """What owners are told of an order that failed: no host, and not the agent's words.

    Those are kept with the order, for administrators.
    """
    if result.is_late:
        return f"A host did not confirm the {order.kind} in time."
    return f"A host failed at the {order.kind}."


@dataclass(frozen=True, slots=True)
class ResultSettings:
    """What the settings say about following results."""

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


News = tuple[OpenOrder, Result]
"""An order that waited until now, and how it ended."""
Follow = Callable[[Tx, Sequence[News], ResultSettings, datetime], None]
"""Does what follows from news about orders of one kind, at most one for each server."""
FollowOne = Callable[[Tx, OpenOrder, Result, datetime], None]


def one_by_one(follow: FollowOne) -> Follow:
    """Follow each piece of news by itself."""

    def all_of_them(tx: Tx, reported: Sequence[News], _: ResultSettings, now: datetime) -> None:
        for order, result in reported:
            follow(tx, order, result, now)

    return all_of_them
