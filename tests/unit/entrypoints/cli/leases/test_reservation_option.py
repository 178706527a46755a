"""The option of the commands about availability that describes a reservation."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from osc_lib.exceptions import CommandError

from innkeeper.entrypoints.cli.leases.calling import add_demand, demand, pairs

PROPERTIES = '["and", ["==","$gpu","a=b"], [">=", "$vcpus", "4"]]'


def asked(*words: str) -> dict[str, Any]:
    """Return the query for these options."""
    parser = argparse.ArgumentParser()
    add_demand(parser)
    return demand(parser.parse_args(words))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "resource_type=ours:node,size=large,nodes=4",
            {"resource_type": "ours:node", "size": "large", "nodes": "4"},
        ),
        (
            f"min=1,max=2,hypervisor_properties=,resource_properties={PROPERTIES},before_end=",
            {
                "min": "1",
                "max": "2",
                "hypervisor_properties": "",
                "resource_properties": PROPERTIES,
                "before_end": "",
            },
        ),
        ("list=a,b,c", {"list": "a,b,c"}),
    ],
)
def test_the_text_is_that_of_a_new_lease(text: str, expected: dict[str, str]) -> None:
    assert pairs(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be KEY=VALUE, not ''"),
        ("large", "must be KEY=VALUE, not 'large'"),
        ("=large", "must be KEY=VALUE, not '=large'"),
        ("size=large,size=small", "size is given twice"),
        ("resource_type=ours:node,lease_id=7", "lease_id is not a parameter of a reservation"),
    ],
)
def test_wrong_texts(text: str, message: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as wrong:
        pairs(text)
    assert str(wrong.value) == message


def test_options_and_the_reservation_together() -> None:
    assert asked() == {"resource_type": "physical:host"}
    assert asked("--reservation", "nodes=4", "--resource-type", "ours:node", "--amount", "2") == {
        "resource_type": "ours:node",
        "amount": "2",
        "nodes": "4",
    }
    for option in ("resource_type", "memory_mb"):
        words = (f"--{option.replace('_', '-')}", "1", "--reservation", f"{option}=1")
        with pytest.raises(CommandError) as twice:
            asked(*words)
        assert str(twice.value) == f"--reservation has {option}, so omit {words[0]}."
