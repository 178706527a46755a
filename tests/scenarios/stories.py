"""Tells stories: steps of requests and expected answers, written as YAML, against a service.

A story is a mapping::

    name: what it shows
    settings: {auth: none}              # optional; settings of the service
    zones: {kid: {zone_name: kid}}      # optional; more services, with the settings of each
    microversion: placement 1.39        # optional; the OpenStack-API-Version of every step
    steps:
      - name: what this step shows
        request:
          method: POST
          path: /placement/resource_providers
          headers: {accept: text/plain}     # optional; null removes a header
          token: admin                      # optional; by default "admin"; null for none
          zone: kid                         # optional; the service that is asked
          hop: {parent: up, password: $p}   # optional; a zone parent asks; see ``hop_tokens``
          microversion: placement 1.20      # optional; null for none
          body: {name: rack-1}              # optional; sent as JSON
          raw: "{not json"                  # optional; sent as it is, labelled as JSON
        answer:
          status: 200
          body: {generation: 0}             # optional; see ``difference``
          text: [fragment]                  # optional; each is in the answer's text
          headers: {location: "$any"}       # optional; null: the header is not there
          absent: [links.0]                 # optional; dotted paths that are not in the body
        save: {uuid: uuid, etag: "header:etag"}   # optional; dotted paths, or headers
        within_s: 5                         # optional; ask again until it is so, this long

``$name`` and ``${name}`` stand for what was saved, ``$url`` for the service's address,
``$kid_url`` for that of the zone ``kid``, and ``$admin_password`` for what the first start made
up, with the setting ``auth: builtin``. A value that is nothing but ``$name`` keeps its type. A
saved name goes before a matcher of the same name, such as ``$uuid``.

Always true: a story runs against a service of its own, so it can rely on an empty store.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from innkeeper.domain.ids import is_uuid
from tests.support import hop_tokens
from tests.support.running import Running

STORY_KEYS = frozenset({"name", "settings", "zones", "microversion", "steps"})
STEP_KEYS = frozenset({"name", "request", "answer", "save", "within_s"})
REQUEST_KEYS = frozenset(
    {"method", "path", "headers", "token", "zone", "hop", "microversion", "body", "raw"}
)
ANSWER_KEYS = frozenset({"status", "body", "text", "headers", "absent"})
VERSION_HEADER = "openstack-api-version"
HEADER_PREFIX = "header:"
PAUSE_S = 0.05
"""The pause between two requests of a step that waits."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Every process of tests reads all stories; the loader in C is ten times faster."""

_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


class _Missing:
    """Takes the place of a missing part of an answer."""

    def __repr__(self) -> str:
        return "missing"


_MISSING = _Missing()
_MATCHERS: Mapping[str, Callable[[Any], bool]] = {
    "$any": lambda thing: thing is not _MISSING,
    "$uuid": lambda thing: isinstance(thing, str) and is_uuid(thing),
    "$string": lambda thing: isinstance(thing, str),
    "$integer": lambda thing: isinstance(thing, int) and not isinstance(thing, bool),
}
"""Expected values that match any value of a type."""


@dataclass(frozen=True, slots=True)
class Story:
    """One story, and its file."""

    path: Path
    name: str
    steps: tuple[Mapping[str, Any], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    microversion: str | None = None
    zones: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read(folder: Path) -> Iterator[Story]:
    """Return all stories below a folder; an unknown key is an error."""
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=LOADER):
            _only(document, STORY_KEYS, path)
            for each in document["steps"]:
                _only(each, STEP_KEYS, path)
                _only(each["request"], REQUEST_KEYS, path)
                _only(each["answer"], ANSWER_KEYS, path)
            yield Story(
                path,
                document["name"],
                tuple(document["steps"]),
                document.get("settings") or {},
                document.get("microversion"),
                document.get("zones") or {},
            )


def _only(found: Mapping[str, Any], known: frozenset[str], path: Path) -> None:
    strange = sorted(found.keys() - known)
    assert not strange, f"{path}: a story knows no {strange}"


def tell(story: Story, service: Running, zones: Mapping[str, Running] | None = None) -> None:
    """Run all steps in order; raises AssertionError at the first that has another answer."""
    saved: dict[str, Any] = {"url": service.url, "admin_password": service.admin_password()}
    others = zones or {}
    saved |= {f"{name}_url": each.url for name, each in others.items()}
    for number, step in enumerate(story.steps, start=1):
        label = f"{story.path.name}, step {number} ({step.get('name', 'unnamed')})"
        zone = step["request"].get("zone")
        asked = service if zone is None else others[zone]
        response = _take(story, step, asked, saved, label)
        for name, where in (step.get("save") or {}).items():
            value = _saved_value(response, where)
            assert value is not _MISSING, f"{label}: nothing to save at {where}"
            saved[name] = value


def _take(
    story: Story, step: Mapping[str, Any], service: Running, saved: dict[str, Any], label: str
) -> Any:
    deadline_s = time.monotonic() + step.get("within_s", 0)
    expected = _fill(step["answer"], saved)
    while True:
        response = _ask(story, _fill(step["request"], saved), service)
        complaint = _complaint(expected, response)
        if complaint is None:
            return response
        if time.monotonic() >= deadline_s:
            told = f"{response.status_code} {dict(response.headers)}\n{response.text[:4000]}"
            raise AssertionError(f"{label}: {complaint}\nThe answer was {told}")
        time.sleep(PAUSE_S)


def _ask(story: Story, request: Mapping[str, Any], service: Running) -> Any:
    headers = {}
    microversion = request.get("microversion", story.microversion)
    if microversion is not None:
        headers[VERSION_HEADER] = microversion
    content: bytes | None = None
    if "body" in request:
        content = json.dumps(request["body"]).encode()
    elif "raw" in request:
        raw = request["raw"]
        content = raw if isinstance(raw, bytes) else str(raw).encode()
    if content is not None:
        headers["content-type"] = "application/json"
    headers.update(request.get("headers") or {})
    token = request.get("token", "admin")
    if "hop" in request:
        method = request.get("method", "GET")
        token = hop_tokens.token(method, request["path"], content or b"", **request["hop"])
    return service.call(
        request.get("method", "GET"),
        request["path"],
        token=token,
        headers={name: value for name, value in headers.items() if value is not None},
        content=content,
    )


def _complaint(expected: Mapping[str, Any], response: Any) -> str | None:
    if response.status_code != expected["status"]:
        return f"the status is not {expected['status']}"
    for name, value in (expected.get("headers") or {}).items():
        complaint = difference(value, response.headers.get(name), f"header {name}")
        if complaint is not None:
            return complaint
    for fragment in expected.get("text") or ():
        if fragment not in response.text:
            return f"{fragment!r} is not in the text"
    if "body" in expected:
        complaint = difference(expected["body"], _body(response), "body")
        if complaint is not None:
            return complaint
    for where in expected.get("absent") or ():
        if _find(_body(response), where) is not _MISSING:
            return f"{where} is there"
    return None


def _body(response: Any) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def difference(expected: Any, found: Any, where: str) -> str | None:
    """Return how ``found`` differs from what is expected; ``None`` if it does not.

    A mapping may have more keys than expected, at any depth. A list must have the same length and
    order. ``$any``, ``$uuid``, ``$string`` and ``$integer`` match any such value.
    """
    if isinstance(expected, str) and expected in _MATCHERS:
        fits = _MATCHERS[expected](found)
        return None if fits else f"{where} is no {expected[1:]}: {found!r}"
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        keys = [str(key) for key in expected]
        pairs = [(key, expected[key], found.get(key, _MISSING)) for key in keys]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{where} has {len(found)} elements, not {len(expected)}"
        pairs = [(str(i), expected[i], each) for i, each in enumerate(found)]
    else:
        # In Python 1 and true are equal; in JSON they are not.
        is_equal = isinstance(expected, bool) == isinstance(found, bool) and expected == found
        return None if is_equal else f"{where} is {found!r}, not {expected!r}"
    complaints = (difference(a, b, f"{where}.{key}") for key, a, b in pairs)
    return next((complaint for complaint in complaints if complaint is not None), None)


def _find(thing: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(thing, Mapping) and part in thing:
            thing = thing[part]
        elif isinstance(thing, list) and part.isdigit() and int(part) < len(thing):
            thing = thing[int(part)]
        else:
            return _MISSING
    return thing


def _saved_value(response: Any, where: str) -> Any:
    if where.startswith(HEADER_PREFIX):
        return response.headers.get(where.removeprefix(HEADER_PREFIX), _MISSING)
    return _find(_body(response), where)


def _fill(thing: Any, saved: Mapping[str, Any]) -> Any:
    if isinstance(thing, Mapping):
        return {_fill(key, saved): _fill(value, saved) for key, value in thing.items()}
    if isinstance(thing, list):
        return [_fill(each, saved) for each in thing]
    if not isinstance(thing, str):
        return thing
    if thing in _MATCHERS and thing[1:] not in saved:
        return thing
    whole = _VARIABLE.fullmatch(thing)
    if whole is not None:
        return _known(whole, saved)
    return _VARIABLE.sub(lambda match: str(_known(match, saved)), thing)


def _known(match: re.Match[str], saved: Mapping[str, Any]) -> Any:
    name = match[1] or match[2]
    assert name in saved, f"nothing was saved as ${name}"
    return saved[name]
