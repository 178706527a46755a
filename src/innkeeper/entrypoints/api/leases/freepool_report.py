"""The report on the use of the freepool, for administrators, as JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta

from innkeeper.domain.errors import Invalid
from innkeeper.domain.freepool_usage import GROUPS, NAMES, PROJECT, TOTAL, Hours
from innkeeper.domain.leases import Window
from innkeeper.entrypoints.api.leases import bodies
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.leases import freepool_report
from innkeeper.systems.leases.rendering import microsecond

DEFAULT_PERIOD = timedelta(days=30)
EARLIEST_END = datetime(1, 1, 1) + DEFAULT_PERIOD  # noqa: DTZ001 - naive, like all times of the core
"""Python has no time that is a default period before an earlier end."""
CSV = "text/csv"
DIGITS = 4
"""The number of decimals of hours. One unit of the last decimal is less than a second."""
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets read a text that begins with one of these characters as a formula."""


async def show(call: Call) -> Answer:
    """Show how long hosts and slots of the freepool were reserved, used and idle.

    The report covers only the past. If the requested period ends in the future, the report ends at
    the current time.
    """
    period, group_by, is_csv = _period(call), _group_by(call), _is_csv(call)
    found = await call.read(lambda tx: freepool_report.of_period(tx, period, group_by))
    if is_csv:
        return Answer(200, _csv(found, group_by), {"content-type": f"{CSV}; charset=utf-8"})
    rows = [{group_by: name, **_rounded(each)} for name, each in found.items() if name != TOTAL]
    shown = {
        "start_date": microsecond(period.start),
        "end_date": microsecond(period.end),
        "group_by": group_by,
        "total": _rounded(found[TOTAL]),
        "rows": rows,
    }
    return Answer(200, {"utilisation": shown})


def _period(call: Call) -> Window:
    end = min(_date(call, "end_date", call.now), call.now)
    start = _date(call, "start_date", max(end, EARLIEST_END) - DEFAULT_PERIOD)
    if start >= end:
        raise Invalid("Start date must be earlier than end date and current date.")
    return Window(start, end)


def _date(call: Call, name: str, default: datetime) -> datetime:
    text = call.last(name)
    return default if not text else bodies.moment(text, call.now)


def _group_by(call: Call) -> str:
    given = call.last("group_by") or PROJECT
    if given not in GROUPS:
        raise Invalid(f"Malformed parameter group_by (must be one of {', '.join(GROUPS)})")
    return given


def _is_csv(call: Call) -> bool:
    given = call.last("format")
    if given is None:
        return CSV in call.headers.get("accept", "")
    if given not in ("json", "csv"):
        raise Invalid("Malformed parameter format (must be json or csv)")
    return given == "csv"


def _rounded(hours: Hours) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in asdict(hours).items()}


def _csv(found: Mapping[str, Hours], group_by: str) -> bytes:
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([group_by, *NAMES])
    for name, each in found.items():
        if name != TOTAL:
            lines.writerow([_harmless(name), *_rounded(each).values()])
    lines.writerow(["total", *_rounded(found[TOTAL]).values()])
    return text.getvalue().encode()


def _harmless(name: str) -> str:
    """Return a name in a form that spreadsheets do not read as a formula."""
    return f"'{name}" if name.startswith(FORMULAS) else name
