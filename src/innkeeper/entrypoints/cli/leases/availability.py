"""The commands ``openstack reservation availability|calendar``, which show free hosts or slots."""

from __future__ import annotations

import argparse
import calendar
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from osc_lib import exceptions as osc_exceptions
from osc_lib.command import command

from innkeeper.entrypoints.cli.leases.calling import (
    FORMAT,
    ReservationCommand,
    add_demand,
    demand,
    intervals,
    present,
)

Table = tuple[Sequence[str], Iterator[Sequence[Any]]]
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
NOTHING = ""


def _add_dates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--start-date", metavar="TIME", help="YYYY-MM-DD HH:MM in UTC; default: now"
    )
    parser.add_argument(
        "--end-date", metavar="TIME", help="YYYY-MM-DD HH:MM in UTC; default: 30 days later"
    )


class ListAvailability(ReservationCommand, command.Lister):
    """List how many hosts or slots are free over time."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_demand(parser)
        _add_dates(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read as many pages as are needed."""
        dates = {"start_date": parsed_args.start_date, "end_date": parsed_args.end_date}
        found = intervals(self, {**demand(parsed_args), **dates})
        return ("Start Date", "End Date", "Free"), (
            (start.strftime(FORMAT), end.strftime(FORMAT), free) for start, end, free in found
        )


class ShowAvailability(ReservationCommand, command.ShowOne):
    """Show the earliest window with free hosts or slots, or the latest possible end of a lease."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_demand(parser)
        _add_dates(parser)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--duration-minutes", metavar="N", help="length of the window to look for"
        )
        what.add_argument("--lease-id", metavar="ID", help="lease to extend")

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Sequence[Any]]:
        """Ask for the earliest window, or for the latest end of the lease."""
        dates = {"start_date": parsed_args.start_date, "end_date": parsed_args.end_date}
        if parsed_args.lease_id is not None:
            query = {"lease_id": parsed_args.lease_id, **dates}
        else:
            minutes = {"duration_minutes": parsed_args.duration_minutes}
            query = {**demand(parsed_args), **dates, **minutes}
        found = self.call("GET", "availability", query=query)["availability"]
        shown = found["earliest"] if parsed_args.lease_id is None else found["extension"]
        if shown is None:
            raise osc_exceptions.CommandError("There is no such window in this time.")
        return tuple(shown), tuple(shown.values())


class ShowCalendar(ReservationCommand, command.Lister):
    """Show a month, with the lowest number of hosts or slots that are free on each day.

    A day is shown as its day of the month and the number of free hosts or slots, such as ``24: 3``.
    Past days have no such number. All days are in UTC.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--month", metavar="YYYY-MM", help="the month; default: this month")
        add_demand(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Read the intervals of the month, and arrange its days in weeks."""
        now = present(self, demand(parsed_args))
        first = _first_day(parsed_args.month, now)
        following = (first + timedelta(days=31)).replace(day=1)
        free: dict[date, int] = {}
        if following > now:
            start, end = max(first, now).strftime(FORMAT), following.strftime(FORMAT)
            query = {**demand(parsed_args), "start_date": start, "end_date": end}
            free = lowest_by_day(intervals(self, query))
        weeks = calendar.Calendar().monthdatescalendar(first.year, first.month)
        return DAYS, ([_cell(each, first.month, free) for each in week] for week in weeks)


def _first_day(text: str | None, now: datetime) -> datetime:
    if text is None:
        return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    try:
        return datetime.strptime(text, "%Y-%m")  # noqa: DTZ007
    except ValueError as error:
        raise osc_exceptions.CommandError(
            f"'{text}' is not a month. Write it like 2030-01."
        ) from error


def lowest_by_day(found: Iterator[tuple[datetime, datetime, int]]) -> dict[date, int]:
    """Return the lowest number of free hosts or slots on each day.

    An interval consists of its start, its end and its number of free hosts or slots.
    """
    lowest: dict[date, int] = {}
    for start, end, free in found:
        day = start.date()
        while datetime.combine(day, datetime.min.time()) < end:
            lowest[day] = min(free, lowest.get(day, free))
            day += timedelta(days=1)
    return lowest


def _cell(day: date, month: int, free: dict[date, int]) -> str:
    if day.month != month:
        return NOTHING
    return f"{day.day}: {free[day]}" if day in free else str(day.day)
