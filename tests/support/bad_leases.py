"""Wrong requests to the Reservation API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WHOLE = {
    "resource_type": "physical:host",
    "min": 1,
    "max": 1,
    "hypervisor_properties": "",
    "resource_properties": "",
}
SLOT = {
    "resource_type": "virtual:instance",
    "vcpus": 1,
    "memory_mb": 512,
    "disk_gb": 1,
    "amount": 1,
    "affinity": "None",
    "resource_properties": "",
}
LEASE = {
    "name": "x",
    "start_date": "2999-01-01 00:00",
    "end_date": "2999-01-02 00:00",
    "reservations": [WHOLE],
    "events": [],
}
BAD_DATES: tuple[Any, ...] = (
    "2999-01-01",
    "2999-01-01T00:00",
    "2999-01-01 00:00:00",
    "2999-01-01 00:00 +02:00",
    "2999-01-01 00:00Z",
    "2999-01-01 00:00 CET",
    "01/01/2999 00:00",
    "2999-13-01 00:00",
    "2999-02-29 00:00",
    "2999-01-01 24:00",
    "10000-01-01 00:00",
    "-2999-01-01 00:00",
    "\uff12\uff19\uff19\uff19-01-01 00:00",
    "tomorrow",
    "",
    None,
    0,
    32_472_144_000,
    [],
    {},
    True,
    "\u0000",
    "\ud800",
)
BAD_REQUIREMENTS: tuple[Any, ...] = (
    "x",
    "[",
    "{}x",
    '["=="]',
    '["==", "$vcpus"]',
    '["==", "vcpus", "8"]',
    '["~", "$vcpus", "8"]',
    '["and"]',
    '["and", "x"]',
    '["or", ["==", "$vcpus", "8"], 3]',
    '["==", "$no_such_property", "8"]',
    '["==", "$\\ud800", "8"]',
    '["==", "$a\\u0000", "8"]',
    '["==", "$vcpus", "\\udfff"]',
    '["==", "$vcpus", {"a": 1}]',
    "[" * 2000,
    "3",
    3,
    ["==", "$vcpus", "8"],
    {},
)
WINDOWS: tuple[Mapping[str, Any], ...] = (
    {"start_date": "2020-01-01 00:00"},
    {"start_date": "0001-01-01 00:00"},
    {"end_date": "2020-01-01 00:00"},
    {"end_date": "2999-01-01 00:00"},
    {"end_date": "2998-12-31 23:59"},
    {"end_date": "now"},
    {"start_date": "2999-01-02 00:00"},
    {"start_date": "9999-12-31 23:59"},
)
NAMES: tuple[Any, ...] = ("", "x" * 81, 3, None, [], {}, "\u0000", "\ud800")
LISTS: tuple[Any, ...] = (None, "x", {}, [1], [None], ["x"], [[]], [{}])
EVENTS: tuple[Any, ...] = ("x", {}, [1], [{}], [{"event_type": "a"}])
AFFINITIES: tuple[Any, ...] = ("maybe", 0, 1, [], {}, "yes")
ACTIONS: tuple[Any, ...] = ("snapshot", "mail", 1, [])
TYPES: tuple[Any, ...] = ("", "x", None, 1, [], "virtual:floatingip")
LEASE_PARTS: tuple[Mapping[str, Any], ...] = (
    *({"name": each} for each in NAMES),
    *({"reservations": each} for each in LISTS),
    {"reservations": [WHOLE] * 101},
    *({"events": each} for each in EVENTS),
    {"events": [{"event_type": "end_lease", "event_date": "2999-01-01 12:00"}]},
    {"events": [{"event_type": "", "event_date": "2999-01-01 12:00"}]},
    {"events": [{"event_type": 7, "event_date": "2999-01-01 12:00"}]},
    {"flavour": 1},
    {"id": "x"},
    {"project_id": "shop"},
    {"shared_with": "shop"},
    {"shared_with": [3]},
    {"idle_grace_minutes": -1},
    {"idle_grace_minutes": "x"},
    {"idle_grace_minutes": 10**30},
)
NUMBERS: tuple[Any, ...] = (0, -1, 1.5, "1", "", None, True, [], {}, 10**30)
RESERVATIONS: tuple[Mapping[str, Any], ...] = (
    *({**WHOLE, name: each} for name in ("min", "max") for each in NUMBERS),
    *({**SLOT, "amount": each} for each in NUMBERS),
    *({**SLOT, name: each} for name in ("vcpus", "memory_mb", "disk_gb") for each in NUMBERS[1:]),
    *({**SLOT, "affinity": each} for each in AFFINITIES),
    *({**WHOLE, "before_end": each} for each in ACTIONS),
    *({**WHOLE, "resource_type": each} for each in TYPES),
    *({**WHOLE, name: 1} for name in ("amount", "x", "status", "id")),
    *({**SLOT, name: 1} for name in ("min", "x", "flavor_id")),
    *({name: SLOT[name] for name in SLOT if name != gone} for gone in SLOT),
    {name: WHOLE[name] for name in WHOLE if name != "min"},
    {"resource_type": "flavor:instance", "flavor_id": "none", "amount": 1, "affinity": "None"},
    {"resource_type": "flavor:instance", "flavor_id": [], "amount": 1, "affinity": "None"},
    {"resource_type": "flavor:instance", "amount": 1, "affinity": "None"},
)
CHANGES: tuple[tuple[Mapping[str, Any], int], ...] = (
    ({}, 400),
    ({"reservations": "x"}, 400),
    ({"reservations": [{}]}, 400),
    ({"reservations": [{"amount": 2}]}, 400),
    ({"reservations": [{"id": "none", "amount": 2}]}, 400),
    ({"reservations": [{"id": None, "amount": 2}]}, 400),
    ({"reservations": [{"id": [], "remove": True}]}, 400),
    *(
        ({"reservations": [{"id": "$part", "remove": each}]}, 400)
        for each in ("yes", 1, None, [True])
    ),
    *(
        ({"reservations": [{"id": "$part", **one}, {"id": "$part", **other}]}, 400)
        for one, other in (({}, {}), ({"amount": 2}, {"amount": 3}), ({"remove": True}, {}))
    ),
    ({"reservations": [{"id": "$part", "amount": 0}]}, 400),
    ({"reservations": [{"id": "$part", "amount": "2"}]}, 400),
    ({"reservations": [{"id": "$part", "colour": 2}]}, 400),
    ({"reservations": [{"id": "$part", "resource_type": "physical:host"}]}, 409),
    ({"reservations": [{"id": "$part", "amount": 9}]}, 409),
    ({"name": "y", "reservations": [{"id": "$part", "amount": 9}]}, 409),
    ({"name": "y", "end_date": "2020-01-01 00:00"}, 400),
    ({"status": "ACTIVE"}, 400),
    ({"id": "x"}, 400),
    ({"name": ""}, 400),
)
HOST_BODIES: tuple[tuple[Mapping[str, Any], int], ...] = (
    ({}, 400),
    ({"name": ""}, 400),
    ({"name": 3}, 400),
    ({"name": "none"}, 404),
    ({"name": "kept", "id": "other"}, 400),
    ({"name": "kept", "k" * 65: "x"}, 400),
    ({"name": "kept", "big": 10**400}, 400),
    ({"name": "kept"}, 409),
)
HOST_CHANGES: tuple[tuple[Mapping[str, Any], int], ...] = (
    ({}, 400),
    ({"k" * 65: "x"}, 400),
    ({"": "x"}, 400),
    ({"vcpus": "9"}, 400),
    ({"id": "9"}, 400),
    ({"gpu": ["x"]}, 400),
    ({"gpu": True}, 400),
    ({"gpu": "x" * 1001}, 400),
    ({"leaves_at": "soon"}, 400),
    ({"leaves_at": "2020-01-01 00:00"}, 400),
    ({"leaves_at": "2999-01-01 12:00"}, 409),
    ({"leaves_at": 3}, 400),
)
PROPERTY_CHANGES: tuple[tuple[str, Any, int], ...] = (
    ("gpu", {}, 400),
    ("gpu", {"private": "yes"}, 400),
    ("gpu", {"private": None}, 400),
    ("gpu", {"private": True, "x": 1}, 400),
    ("none", {"private": True}, 404),
)
SWAPS: tuple[tuple[Any, int], ...] = (
    ({}, 400),
    ({"lease_id": ""}, 400),
    ({"lease_id": 3}, 400),
    ({"lease_id": None}, 400),
    ({"lease_id": "none"}, 404),
    ({"lease_id": "$lease", "x": 1}, 400),
)
NO_OBJECTS: tuple[Any, ...] = ([], None, 3, "x", True, [{}])
QUERIES = (
    "leases?status=WAITING",
    "leases?start_date=tomorrow",
    "leases?end_date=2999-13-01%2000:00",
    "leases?marker=none",
    "leases?limit=-1",
    "leases?limit=x",
    "os-hosts?marker=none",
    "os-hosts?limit=-1",
    "availability?resource_type=physical:host&start_date=2999-01-02%2000:00&end_date=now",
    "availability?lease_id=none&amount=-1",
    "availability?resource_type=physical:host&amount=1&min=1",
    "availability?resource_type=physical:host&amount=1&max=2",
    "availability?resource_type=physical:host&id=x",
)
"""Answers are 400, or 404 for what is not there."""
