"""The fast parser of a boot's body returns the same as the schemas, or nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from innkeeper.domain.errors import Invalid
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute.servers.bodies import ServerCreateRequest, create_request
from innkeeper.entrypoints.api.compute.servers.plain import SINCE, decode
from innkeeper.entrypoints.api.compute.servers.schemas import CREATE
from innkeeper.entrypoints.api.microversions import Schema, passage
from innkeeper.entrypoints.api.tables import COMPUTE
from innkeeper.entrypoints.api.validation import Validator, decode_json


def bodies_since(version: Version) -> list[Schema]:
    """Every schema that a boot's body has had from a version on, the newest last."""
    versions = COMPUTE.versions
    assert versions is not None
    later = [version, *(step.version for step in versions.after(version))]
    ways = [passage(versions.after(v), "POST", "/v2.1/servers", CREATE, None) for v in later]
    # The fast parser skips upgrades of the body, so there must be none.
    assert [way.ups for way in ways] == [()] * len(ways)
    return [way.body for way in ways if way.body is not None]


SLOW = [Validator(body, str) for body in bodies_since(SINCE)]
UUID = "6f1a2c7e-0d3b-4f55-9b8e-2f6f5a1f0c11"
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["web", " web", "web\n", "", "a" * 255, "a" * 256, "\x00", "\u2028", "\x85", "1"]
    ),
)
NUMBERS = st.one_of(
    st.integers(-2, 5), st.sampled_from([2**31 - 1, 2**31, 2**64, 1.0, True, "2", "", None])
)
DEVICES = st.fixed_dictionaries(
    {},
    optional={
        "source_type": st.sampled_from(["blank", "image", "volume"]),
        "destination_type": st.sampled_from(["local", "volume"]),
        "boot_index": st.sampled_from([0, -1, "0", None, False, 0.0]),
        "delete_on_termination": st.sampled_from([True, False, "true", None]),
        "uuid": st.sampled_from([UUID, "", "x" * 256]),
        "volume_size": NUMBERS,
    },
)
SERVERS = st.fixed_dictionaries(
    {},
    optional={
        "name": TEXTS,
        "flavorRef": st.one_of(TEXTS, NUMBERS),
        "imageRef": st.one_of(st.sampled_from(["", UUID, UUID.upper(), UUID + "\n"]), TEXTS),
        "networks": st.sampled_from(["auto", "none", "", None, []]),
        "block_device_mapping_v2": st.lists(DEVICES, max_size=2),
        "metadata": st.dictionaries(TEXTS, st.one_of(TEXTS, NUMBERS), max_size=2),
        "min_count": NUMBERS,
        "max_count": NUMBERS,
        "availability_zone": st.one_of(TEXTS, st.none()),
        "key_name": TEXTS,
        "return_reservation_id": st.sampled_from([True, False, "true", "1", None, 1]),
        "description": TEXTS,
        "colour": TEXTS,
    },
)
TOLD = st.fixed_dictionaries(
    {},
    optional={
        "definitions": st.one_of(
            st.dictionaries(TEXTS, st.one_of(TEXTS, st.none()), max_size=9), NUMBERS
        ),
        "batch_id": st.sampled_from(["r-1", "r-1\n", "r-" + "a" * 63, "s-1", "", None, 1]),
        "entries": st.one_of(st.lists(st.dictionaries(TEXTS, TEXTS), max_size=2), NUMBERS),
        "colour": TEXTS,
    },
)
HINTS = st.one_of(
    st.none(),
    st.dictionaries(
        st.sampled_from(
            ["group", "same_host", "different_host", "reservation", "pcloud", "query", "colour"]
        ),
        st.one_of(
            st.sampled_from([UUID, UUID.upper(), UUID.replace("-", ""), UUID + "\n"]),
            TEXTS,
            st.lists(TEXTS, max_size=1),
            NUMBERS,
        ),
        max_size=2,
    ),
)
PLAIN: dict[str, Any] = {
    "server": {
        "name": "web",
        "flavorRef": "small",
        "imageRef": "",
        "networks": "none",
        "min_count": 1,
        "max_count": 1,
        "metadata": {"a": "b"},
        "block_device_mapping_v2": [
            {
                "source_type": "blank",
                "destination_type": "local",
                "boot_index": 0,
                "delete_on_termination": True,
            }
        ],
    }
}


# Bodies are mostly good, with a few keys removed or changed. A body with many faults would only be
# refused for the first.
GOOD = st.lists(st.sampled_from(sorted(PLAIN["server"])), max_size=4).map(
    lambda gone: {key: PLAIN["server"][key] for key in PLAIN["server"] if key not in gone}
)
BODIES = st.one_of(
    st.builds(lambda good: {"server": good}, GOOD),
    st.builds(
        lambda good, odd, keys: {
            "server": {**good, **{key: odd[key] for key in keys if key in odd}}
        },
        GOOD,
        SERVERS,
        st.lists(st.sampled_from([*PLAIN["server"], "availability_zone"]), max_size=2),
    ),
    st.fixed_dictionaries(
        {"server": SERVERS},
        optional={"OS-SCH-HNT:scheduler_hints": st.just({}), "more": st.just(1)},
    ),
    st.builds(lambda good, hints: {"server": good, "os:scheduler_hints": hints}, GOOD, HINTS),
    st.builds(lambda good, told: {"server": good, "zone": told}, GOOD, st.one_of(TOLD, NUMBERS)),
)


def slowly(body: bytes) -> ServerCreateRequest | None:
    """The result of the schemas for a body; ``None`` if a schema refuses it."""
    try:
        thing = decode_json(body)
        for schema in SLOW:
            schema.check(thing)
    except Invalid:
        return None
    return create_request(thing)


@given(BODIES)
@example(PLAIN)
@example({"server": {**PLAIN["server"], "name": "null"}})
def test_both_ways_mean_the_same(thing: Any) -> None:
    body = msgspec.json.encode(thing)
    quick = decode(body)
    assert quick is None or quick == slowly(body)


@given(st.binary(max_size=40))
@example(b'{"server": {"name": "a", "name": "b", "flavorRef": "x"}}')
@example(b'{"server": {"name": "\\ud800", "flavorRef": "x"}}')
@example(b"[" * 100_000)
def test_whatever_comes_it_does_not_fail(body: bytes) -> None:
    quick = decode(body)
    assert quick is None or quick == slowly(body)


def test_what_the_stock_client_sends_takes_the_quick_way() -> None:
    assert decode(msgspec.json.encode(PLAIN)) == slowly(msgspec.json.encode(PLAIN))
    assert decode(msgspec.json.encode(PLAIN)) is not None


def nested(levels: int) -> Any:
    return {"a": nested(levels - 1)} if levels else 1


TOLD_CASES: list[tuple[Any, bool]] = [
    ({"definitions": {"image": None}, "batch_id": "r-1", "entries": [{"id": UUID}]}, True),
    ({"definitions": {"deep": nested(29)}}, True),
    ({"definitions": {"deep": nested(30)}}, False),
    ({"definitions": {"nul": "\0"}}, False),
    ({"definitions": {}, "entries": [1] * 1001}, False),
    (None, False),
]


@pytest.mark.parametrize(("told", "is_quick"), TOLD_CASES)
def test_what_zone_parents_say_takes_the_quick_way(told: Any, is_quick: bool) -> None:
    body = msgspec.json.encode({**PLAIN, "zone": told})
    assert (decode(body) is not None) == is_quick
    assert decode(body) == slowly(body)


@pytest.mark.parametrize("hint", ["group", "same_host", "different_host", "reservation", "pcloud"])
def test_a_hint_that_names_one_thing_takes_the_quick_way(hint: str) -> None:
    body = msgspec.json.encode({**PLAIN, "os:scheduler_hints": {hint: UUID}})
    quick = decode(body)
    assert quick is not None
    assert quick == slowly(body)
