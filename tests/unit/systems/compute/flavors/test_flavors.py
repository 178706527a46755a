"""Extra specs: those that scheduling reads are validated; all others are left to drivers."""

from __future__ import annotations

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.systems.compute.flavors.flavors import check_extra_specs


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trait:CUSTOM_FAST", "required"),
        ("trait:HW_CPU_X86_AVX2", "forbidden"),
        ("resources:VCPU", "0"),
        ("resources:CUSTOM_GPU", "12"),
        ("group_policy", "isolate"),
        ("hw:cpu_policy", "whatever the driver makes of it"),
        ("capabilities:disk_kind", "ssd"),
        ("traits", "no namespace"),
        ("", ""),
    ],
)
def test_what_can_be_read_is_taken(key: str, value: str) -> None:
    check_extra_specs({key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trait:CUSTOM_FAST", "perhaps"),
        ("trait:CUSTOM_FAST", ""),
        ("trait:custom_fast", "required"),
        ("trait:", "required"),
        ("resources:VCPU", "-1"),
        ("resources:VCPU", "1.5"),
        ("resources:VCPU", "\u0663"),
        ("resources:VCPU", "12345678901"),
        ("resources:vcpu", "1"),
        ("group_policy", "together"),
    ],
)
def test_what_cannot_be_read_is_refused(key: str, value: str) -> None:
    with pytest.raises(Invalid, match="Validation failed"):
        check_extra_specs({"hw:a": "b", key: value})
