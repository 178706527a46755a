"""Validation of bodies and queries against JSON schemas.

Errors have the wording of the ``jsonschema`` library, because clients and their tests match on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import msgspec

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import is_uuid
from innkeeper.entrypoints.api.microversions import Schema

FORMATS = jsonschema.FormatChecker(formats=())
"""The formats that schemas may use."""

EXACT_MAX = 2.0**53
"""A float represents every integer below this number exactly."""
DEPTH_MAX = 32
"""The maximum depth of nesting of a body. No schema needs a deeper body. A deeper body is rejected
before validation."""


@FORMATS.checks("uuid")
def _is_uuid(thing: object) -> bool:
    return not isinstance(thing, str) or is_uuid(thing)


def _within_limits(keyword: Any) -> Any:
    """Return a check of a schema keyword that skips values with too many items or properties.

    The keywords ``maxItems`` and ``maxProperties`` reject such values. Otherwise, every item would
    be checked first, which is expensive.
    """

    def check(validator: Any, value: Any, thing: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        limit = None
        if isinstance(thing, list | dict):
            limit = schema.get("maxItems" if isinstance(thing, list) else "maxProperties")
        if limit is None or len(thing) <= limit:
            yield from keyword(validator, value, thing, schema) or ()

    return check


VISITING = (
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "enum",
    "items",
    "not",
    "oneOf",
    "patternProperties",
    "properties",
    "uniqueItems",
)
"""Keywords whose checks visit each item or property of a value."""

LimitedValidator: Any = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft4Validator,
    {name: _within_limits(jsonschema.Draft4Validator.VALIDATORS[name]) for name in VISITING},
)


class Validator:
    """A compiled schema.

    The validator reports the first violation, or the most relevant one if ``most_telling`` is true.
    """

    def __init__(
        self, schema: Schema, wording: Callable[[Any], str], *, most_telling: bool = False
    ) -> None:
        self._validator = LimitedValidator(schema, format_checker=FORMATS)
        self._wording = wording
        self._most_telling = most_telling
        # Most requests have an empty query, whose result is always the same.
        self._takes_nothing = self._validator.is_valid({})

    def check(self, thing: Any) -> None:
        """Raise :class:`Invalid`, in the API's wording, if ``thing`` violates the schema."""
        if self._takes_nothing and thing == {}:
            return
        errors = self._validator.iter_errors(thing)
        best_match = jsonschema.exceptions.best_match
        error = best_match(errors) if self._most_telling else next(errors, None)
        if error is not None:
            raise Invalid(self._wording(error))


def decode_json(body: bytes, *, whole_floats: bool = False) -> Any:
    """Decode a JSON body.

    Raises :class:`Invalid` for malformed JSON, deep nesting and NUL characters. ``whole_floats``
    converts floats without a fractional part to integers.
    """
    try:
        thing = (WHOLE_FLOATS if whole_floats else PLAIN).decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"Malformed JSON: {_in_known_words(body, error)}") from error
    if _is_deeper_than(thing, DEPTH_MAX):
        raise Invalid(f"Malformed JSON: nested deeper than {DEPTH_MAX} levels")
    if _NUL_ESCAPE in body and _has_nul(thing):
        # Some databases reject NUL characters.
        raise Invalid("Malformed JSON: a string has a NUL character")
    return thing


def _whole(text: str) -> float:
    number = float(text)
    is_exact = number.is_integer() and abs(number) < EXACT_MAX
    return int(number) if is_exact else number


PLAIN = msgspec.json.Decoder()
WHOLE_FLOATS = msgspec.json.Decoder(float_hook=_whole)


def _in_known_words(body: bytes, error: Exception) -> Exception:
    """Return the JSON error of the standard library for the body, which OpenStack's clients expect.

    Returns ``error`` itself if the standard library accepts the body.
    """
    try:
        json.loads(body.decode())
    except (ValueError, RecursionError) as known:
        return known
    return error


_NUL_ESCAPE = b"\\u0000"


def _has_nul(thing: Any) -> bool:
    if isinstance(thing, str):
        return "\0" in thing
    if isinstance(thing, dict):
        return any(_has_nul(key) or _has_nul(value) for key, value in thing.items())
    return isinstance(thing, list) and any(_has_nul(each) for each in thing)


def _is_deeper_than(thing: Any, levels: int) -> bool:
    if not isinstance(thing, dict | list):
        return False
    if levels == 0:
        return True
    inner = thing.values() if isinstance(thing, dict) else thing
    return any(_is_deeper_than(each, levels - 1) for each in inner)


def query_for_schema(query: Mapping[str, list[str]], is_single: bool) -> dict[str, Any]:
    """Return the query in the form that the API's schemas describe.

    If ``is_single`` is true, a parameter has only its last value. Otherwise, it has a list of all
    its values.
    """
    if is_single:
        return {name: values[-1] for name, values in query.items()}
    return dict(query)
