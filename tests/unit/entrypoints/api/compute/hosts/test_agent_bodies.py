"""The decoders of agents' bodies accept nothing that the schema rejects."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.compute.hosts.agent_bodies import (
    ReportBody,
    ResultsBody,
    converter_of,
    decoder_of,
)
from innkeeper.entrypoints.api.compute.hosts.agent_schemas import REPORT, RESULTS
from innkeeper.entrypoints.api.validation import Validator

REPORTS = Validator(REPORT, lambda error: str(error.message))
ALL_RESULTS = Validator(RESULTS, lambda error: str(error.message))
DECODE = decoder_of(ReportBody)
GOOD: dict[str, Any] = {
    "name": "h1",
    "provider_uuid": "0f6e2a8c-5b21-4a9c-9c0e-2a6c5b9d7e11",
    "availability_zone": "north",
    "host_type": "fake",
    "host_version": 1,
    "host_ip": "192.0.2.1",
    "cpu_facts": {"arch": "x86_64", "topology": {"cores": 4}, "features": ["aes", 1]},
    "inventories": {"VCPU": {"total": 8, "allocation_ratio": 4}, "CUSTOM_X": {"total": 1}},
    "traits": ["CUSTOM_Y"],
    "capabilities": {"cpu_mhz": 2600.5, "is_new": True},
    "booted_at": "2026-01-01T00:00:00Z",
    "servers": ["0f6e2a8c-5b21-4a9c-9c0e-2a6c5b9d7e12"],
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**64), max_value=2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["h1\n", " h1", "a:b", "x" * 300, "\0", "2026-13-45T99:99:99Z"]),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def is_valid(body: Any) -> bool:
    try:
        REPORTS.check(body)
    except Invalid:
        return False
    return True


def test_a_valid_report_is_decoded() -> None:
    body = {"hosts": [GOOD]}
    assert is_valid(body)
    decoded = DECODE(msgspec.json.encode(body))
    assert decoded is not None
    assert decoded == converter_of(ReportBody)(body)


@given(key=st.sampled_from([*GOOD, "other"]), value=ODD)
def test_a_decoded_host_is_valid(key: str, value: Any) -> None:
    host = {**copy.deepcopy(GOOD), key: value}
    body = {"hosts": [host]}
    if DECODE(msgspec.json.encode(body)) is not None:
        assert is_valid(body)


@given(key=st.sampled_from(["VCPU", "lower", "X" * 300]), value=ODD)
def test_decoded_inventories_are_valid(key: str, value: Any) -> None:
    body = {"hosts": [{"name": "h", "inventories": {key: {"total": value}}}]}
    if DECODE(msgspec.json.encode(body)) is not None:
        assert is_valid(body)


@given(key=st.text(max_size=4), value=ODD)
def test_decoded_facts_are_valid(key: str, value: Any) -> None:
    for fact in (value, {"inner": value}, [value]):
        body = {"hosts": [{"name": "h", "inventories": {}, "capabilities": {key: fact}}]}
        if DECODE(msgspec.json.encode(body)) is not None:
            assert is_valid(body)


def test_a_uuid_in_another_form_is_left_to_the_schema() -> None:
    bare = GOOD["provider_uuid"].replace("-", "").upper()
    body = {"hosts": [{**GOOD, "provider_uuid": bare}]}
    assert DECODE(msgspec.json.encode(body)) is None
    assert is_valid(body)


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000, b'{"hosts": []}'])
def test_a_malformed_body_raises_nothing(raw: bytes) -> None:
    assert DECODE(raw) is None


@given(number=st.integers(-5, 2**64), ok=ODD, fault=ODD)
def test_decoded_results_are_valid(number: int, ok: Any, fault: Any) -> None:
    body = {"results": [{"order_id": number, "ok": ok, "fault": fault}]}
    if decoder_of(ResultsBody)(msgspec.json.encode(body)) is not None:
        ALL_RESULTS.check(body)


def test_conversion_rejects_what_only_the_body_type_forbids() -> None:
    with pytest.raises(Invalid):
        converter_of(ResultsBody)({"results": []})
