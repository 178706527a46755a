"""Pages of a list: how long one may be, and the address of the next."""

from __future__ import annotations

from urllib.parse import urlencode

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.routing import Call

DIGITS_MAX = 18
"""A longer number is no page size, and would not fit the store's integers."""


def limit_of(call: Call) -> int:
    """How many to give: what the client asks for, and at most what the settings allow."""
    most = call.site.settings.serving.page_size_max
    text = call.last("limit")
    if text is None:
        return most
    if not (text.isascii() and text.isdigit()):
        raise Invalid("limit must be a number that is not negative")
    return min(int(text[:DIGITS_MAX]), most)


def next_query(call: Call, marker: str) -> str:
    """The query of the page behind ``marker``: the present one, with another marker."""
    pairs = [
        (name, value) for name, values in call.query.items() if name != "marker" for value in values
    ]
    return urlencode([*pairs, ("marker", marker)])
