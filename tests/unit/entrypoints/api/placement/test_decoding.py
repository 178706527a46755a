"""The fast decoder accepts no body that the schema rejects."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.api.placement.decoding import decode_consumer
from innkeeper.entrypoints.api.placement.schemas import WRITE_CONSUMER
from innkeeper.entrypoints.api.validation import Validator

PROVIDER = "a0000000-0000-4000-8000-00000000000a"
GOOD: dict[str, Any] = {
    "allocations": {PROVIDER: {"resources": {"VCPU": 2}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}
schema = Validator(WRITE_CONSUMER, str)
odd = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=3)
)
amounts = st.one_of(odd, st.integers(1, 9))
resources = st.one_of(odd, st.dictionaries(st.sampled_from(["VCPU", "vcpu", ""]), amounts))
lines = st.one_of(
    odd, st.fixed_dictionaries({"resources": resources}, optional={"generation": odd})
)
allocations = st.one_of(odd, st.dictionaries(st.sampled_from([PROVIDER, "x"]), lines))


def is_valid(body: Any) -> bool:
    """Whether the schema takes a body."""
    try:
        schema.check(body)
    except Invalid:
        return False
    return True


def test_a_plain_body_is_decoded() -> None:
    assert decode_consumer(json.dumps(GOOD).encode()) == GOOD
    let_go = {**GOOD, "allocations": {}}
    assert decode_consumer(json.dumps(let_go).encode()) == let_go


def test_rarer_bodies_are_left_to_the_schema() -> None:
    with_mappings = {**GOOD, "mappings": {"": [PROVIDER]}}
    assert is_valid(with_mappings)
    assert decode_consumer(json.dumps(with_mappings).encode()) is None
    assert decode_consumer(b"{") is None
    assert decode_consumer(b'{"project_id": "\xff"}') is None


@given(
    st.dictionaries(st.sampled_from([*GOOD, "more"]), odd, max_size=2),
    st.one_of(st.none(), allocations),
    st.sets(st.sampled_from(list(GOOD)), max_size=1),
)
def test_a_decoded_body_is_valid(changed: dict[str, Any], some: Any, missing: set[str]) -> None:
    body = {**GOOD, **changed}
    if some is not None:
        body["allocations"] = some
    for name in missing:
        del body[name]
    found = decode_consumer(json.dumps(body, ensure_ascii=False).encode())
    assert found is None or (found == body and is_valid(body))
