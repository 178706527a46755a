"""Sends requests to two services, and finds the differences between their answers.

Always true: values that cannot be equal (times, request ids, the service's address) are
removed from both answers. Lists are compared in their order, unless the request says that the
original's order is random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx

from tests.compat.differences import DIFFERENCES, otherwise_said
from tests.support.original import Original, original
from tests.support.running import Running, running

MOUNT = "/placement"
NEWEST = "1.39"
LISTED_MAX = 15
SHOWN_MAX = 400
VERSIONS = tuple(f"1.{minor}" for minor in range(40))
COMPARED_HEADERS = ("cache-control", "content-type", "location", "openstack-api-version", "vary")
"""Headers whose values must be equal. For other headers, only their presence is compared."""
PRESENT_HEADERS = ("last-modified", "x-openstack-request-id")


@dataclass(frozen=True)
class Ask:
    """One request. ``differs`` names an entry of the table of deliberate differences.

    ``any_order`` is for lists that the original builds from a set: their order changes with each
    start.
    """

    method: str
    path: str
    body: Any = None
    version: str | None = NEWEST
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = "admin"
    differs: str | None = None
    any_order: bool = False

    def __str__(self) -> str:
        body = "" if self.body is None else f" {_short(self.body)}"
        headers = "".join(f" {name}: {value}" for name, value in self.headers.items())
        return f"{self.method} {self.path}{body} @{self.version}{headers}"


def _short(body: Any) -> str:
    text = repr(body) if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False)
    return text if len(text) < SHOWN_MAX else text[:SHOWN_MAX] + "..."


def uuid(number: int) -> str:
    """A uuid that is the same in every run."""
    return f"10000000-0000-4000-8000-{number:012d}"


def at(versions: Iterable[str], *asks: Ask) -> Iterator[Ask]:
    """Return the same requests for each of the versions."""
    for version in versions:
        for ask in asks:
            yield replace(ask, version=version)


class Pair:
    """The original and ours, both with empty databases."""

    def __init__(self, theirs: Original, ours: Running) -> None:
        self.theirs = theirs
        self.ours = ours

    def differences(self, asks: Iterable[Ask]) -> list[str]:
        """Send all requests to both services; returns the requests whose answers differ.

        A deliberate difference that does not occur is reported too.
        """
        found = []
        for ask in asks:
            theirs, ours = (_essence(each, ask) for each in self.ask(ask))
            different = [name for name in theirs if not _agrees(name, theirs, ours)]
            if ask.differs is not None:
                assert ask.differs in DIFFERENCES, ask
                if not different:
                    found.append(f"{ask}\n  is not different any more")
                continue
            found += (
                f"{ask}\n  {name}\n    {_short(theirs[name])}\n    {_short(ours.get(name))}"
                for name in different
            )
        return found

    def agree(self, asks: Iterable[Ask]) -> None:
        """Fail if there are differences that are not deliberate, and show them."""
        found = self.differences(asks)
        assert not found, "\n".join([f"{len(found)} differences", *found[:LISTED_MAX]])

    def ask(self, ask: Ask) -> tuple[httpx.Response, httpx.Response]:
        """Return both answers, the original's first."""
        headers = dict(ask.headers)
        if ask.version is not None:
            headers.setdefault("openstack-api-version", f"placement {ask.version}")
        content = {"content" if isinstance(ask.body, bytes) else "json": ask.body}
        theirs = self.theirs.call(
            ask.method, ask.path, version=None, body=ask.body, headers=headers, token=ask.token
        )
        ours = self.ours.call(
            ask.method, MOUNT + ask.path, token=ask.token, headers=headers, **content
        )
        return theirs, ours


@contextmanager
def both(directory: Path) -> Iterator[Pair]:
    """Start the original and ours."""
    with original(directory) as theirs, running(directory / "ours", apis=("placement",)) as ours:
        yield Pair(theirs, ours)


def _agrees(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    their_part, our_part = theirs[name], ours.get(name)
    if name == "detail" and their_part is not None and our_part is not None:
        # Our detail may have an addition at its end.
        return bool(our_part.startswith(otherwise_said(their_part)))
    if name == "body" and isinstance(their_part, str):
        return bool(otherwise_said(their_part) == our_part)
    # Our service always sends "Vary". The original omits it in some errors.
    return bool(their_part == our_part) or (name == "vary" and their_part is None)


def _essence(response: httpx.Response, ask: Ask) -> dict[str, Any]:
    found: dict[str, Any] = {"status": response.status_code}
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        # The services have different authentication, so only one of them sends Keystone's headers.
        return found
    for name in COMPARED_HEADERS:
        value = response.headers.get(name)
        found[name] = None if value is None else _plain(value)
    if found["content-type"] is not None:
        found["content-type"] = found["content-type"].lower()
    allow = response.headers.get("allow")
    found["allow"] = None if allow is None else sorted(re.split(r"\s*,\s*", allow))
    for name in PRESENT_HEADERS:
        found[f"has {name}"] = name in response.headers
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if is_json and response.content:
        body = response.json()
        if isinstance(body, dict) and isinstance(body.get("errors"), list):
            (error,) = body["errors"]
            found["has request_id"] = bool(error.pop("request_id", None))
            found["code"] = error.pop("code", None)
            found["detail"] = _plain(error.pop("detail"))
            body = error
        any_order = ask.any_order or _lists_standard_traits(ask)
        found["body"] = _comparable(body, any_order=any_order)
    else:
        found["body"] = _plain(response.text)
    return {**dict.fromkeys(("has request_id", "code", "detail")), **found}


def _plain(text: str) -> str:
    text = re.sub(r"https?://127\.0\.0\.1:\d+(/placement)?", "", text)
    text = re.sub(r"\s+", " ", text.replace("/placement/", "/")).replace(" <br />", "<br />")
    # Errors of a JSON schema quote it, and equivalent schemas may be written differently.
    return re.sub(r"( in schema\S*): .*( On instance)", r"\1\2", text).strip()


def _lists_standard_traits(ask: Ask) -> bool:
    """The original numbers the standard traits in the order of a set, and lists them by number."""
    path, _, query = ask.path.partition("?")
    return path == "/traits" and "name=in:" not in query and "CUSTOM_" not in query


def _comparable(body: Any, *, any_order: bool) -> Any:
    if isinstance(body, dict):
        return {name: _comparable(each, any_order=any_order) for name, each in body.items()}
    if isinstance(body, list):
        found = [_comparable(each, any_order=any_order) for each in body]
        return sorted(found, key=repr) if any_order else found
    return _plain(body) if isinstance(body, str) else body
