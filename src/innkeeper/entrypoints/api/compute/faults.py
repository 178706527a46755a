"""This module formats the error bodies of the Compute API.

A body has one key, which names the kind of error. Its value has the code and the message.
"""

from __future__ import annotations

import re
from typing import Any

from innkeeper.entrypoints.api.faults import Fault, encode
from innkeeper.entrypoints.api.patterns import WORDS

MEDIA_TYPE = "application/json; charset=UTF-8"
KEYS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
"""Nova's key in error bodies, by status. All other statuses have the key ``computeFault``."""
_UNKNOWN_SERVER = re.compile(r"\AServer (?=.* could not be found\.\Z)", re.DOTALL)
SECRET_FIELDS = frozenset({"adminpass", "admin_pass", "password", "user_data"})
"""Fields whose values must never appear in errors, in lower case, with common misspellings."""
MASK = "***"
SHOWN_MAX = 200
"""An error quotes at most this many characters of a rejected value."""


def form(fault: Fault) -> tuple[bytes, str]:
    """Return the body and the media type of a fault's answer."""
    if fault.status == 401:  # noqa: PLR2004 - a status
        # In OpenStack, the auth middleware in front of Nova sends this error, in this format.
        body = {"error": {"code": 401, "title": fault.title, "message": fault.message}}
        return encode(body), "application/json"
    key = KEYS.get(fault.status, "computeFault")
    inner: dict[str, Any] = {"code": fault.status, "message": _wording(fault)}
    if "retry-after" in fault.headers:
        inner["retryAfter"] = fault.headers["retry-after"]
    return encode({key: inner}), MEDIA_TYPE


def _wording(fault: Fault) -> str:
    message = fault.message
    if "min_version" in fault.extra:
        version = message.rpartition(" ")[2]
        return (
            f"Version {version} is not supported by the API. Minimum is "
            f"{fault.extra['min_version']} and maximum is {fault.extra['max_version']}."
        )
    if message.startswith("Policy does not allow "):
        return message.replace("does not", "doesn't", 1)
    # Clients that look up servers and server groups by name rely on this exact wording.
    return _UNKNOWN_SERVER.sub("Instance ", message, count=1)


def body_refusal(error: Any) -> str:
    """Return the message for a validation error in a request body."""
    return _refusal(error, "field/attribute", error.path[-1] if error.path else None)


def query_refusal(error: Any) -> str:
    """Return the message for a validation error in a request's query."""
    # The path has the parameter's name and an index, because a parameter has a list of values.
    return _refusal(error, "query parameters", error.path[0] if error.path else None)


def _refusal(error: Any, noun: str, name: Any) -> str:
    if name is None:
        return _shortened(_in_words(error) or error.message, 2 * SHOWN_MAX)
    named = _shortened(str(name), SHOWN_MAX)
    is_secret = any(_is_secret(part) for part in error.path)
    masked = MASK if is_secret else _masked(error.instance)
    value = _shortened(str(masked), SHOWN_MAX)
    message = _in_words(error) or str(error.message)
    if masked != error.instance:
        message = message.replace(repr(error.instance), repr(masked))
    message = _shortened(message, 2 * SHOWN_MAX)
    return f"Invalid input for {noun} {named}. Value: {value}. {message}"


def _in_words(error: Any) -> str | None:
    """Describe the violated pattern in words. Return ``None`` for other violations."""
    if error.validator == "pattern":
        return WORDS.get(error.validator_value)
    if error.validator != "additionalProperties":
        return None
    patterns = tuple(error.schema.get("patternProperties", ()))
    if len(patterns) != 1 or patterns[0] not in WORDS:
        return None
    known = error.schema.get("properties", {})
    keys = (each for each in error.instance if each not in known)
    wrong = next(each for each in keys if re.search(patterns[0], each) is None)
    return f"The key {wrong!r} is not allowed. {WORDS[patterns[0]]}"


def _is_secret(name: Any) -> bool:
    return str(name).lower() in SECRET_FIELDS


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: MASK if _is_secret(name) else _masked(part) for name, part in value.items()}
    return [_masked(each) for each in value] if isinstance(value, list) else value


def _shortened(text: str, length_max: int) -> str:
    if len(text) <= length_max:
        return text
    half = length_max // 2
    return f"{text[:half]}...{text[-half:]}"
