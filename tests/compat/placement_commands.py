"""All commands of osc-placement: their first microversions, and their options.

The list is written by hand on purpose: if a release of the client differs from the list, the
release needs a review.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SOME = "a0000000-0000-4000-8000-00000000000a"
"""An id without any resource."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, its first minor version, and a command line that fails before that."""

    since: int = 0
    words: tuple[str, ...] = ()
    options: Mapping[str, int] = field(default_factory=dict)
    """Options by name, and the first minor version of each."""


COMMANDS: Mapping[str, Command] = {
    "allocation candidate list": Command(
        10,
        ("--resource", "VCPU=1"),
        {
            "--resource": 10,
            "--limit": 16,
            "--required": 17,
            "--member-of": 21,
            "--aggregate-uuid": 21,
            "--forbidden": 22,
            "--group": 25,
            "--group-policy": 25,
        },
    ),
    "resource class create": Command(2, ("CUSTOM_NO",)),
    "resource class delete": Command(2, ("CUSTOM_NO",)),
    "resource class list": Command(2),
    "resource class set": Command(7, ("CUSTOM_NO",)),
    "resource class show": Command(2, ("VCPU",)),
    "resource provider aggregate list": Command(1, (SOME,)),
    "resource provider aggregate set": Command(1, (SOME,), {"--aggregate": 1, "--generation": 19}),
    "resource provider allocation delete": Command(),
    "resource provider allocation set": Command(
        options={"--allocation": 0, "--project-id": 8, "--user-id": 8, "--consumer-type": 38}
    ),
    "resource provider allocation show": Command(),
    "resource provider allocation unset": Command(
        12, (SOME,), {"--provider": 12, "--resource-class": 12}
    ),
    "resource provider create": Command(options={"--uuid": 0, "--parent-provider": 14}),
    "resource provider delete": Command(),
    "resource provider inventory class set": Command(
        options={
            "--total": 0,
            "--reserved": 0,
            "--min_unit": 0,
            "--max_unit": 0,
            "--step_size": 0,
            "--allocation_ratio": 0,
        }
    ),
    "resource provider inventory delete": Command(options={"--resource-class": 0}),
    "resource provider inventory list": Command(),
    "resource provider inventory set": Command(
        options={"--resource": 0, "--amend": 0, "--dry-run": 0, "--aggregate": 3}
    ),
    "resource provider inventory show": Command(),
    "resource provider list": Command(
        options={
            "--uuid": 0,
            "--name": 0,
            "--member-of": 3,
            "--aggregate-uuid": 3,
            "--resource": 4,
            "--in-tree": 14,
            "--required": 18,
            "--forbidden": 22,
        }
    ),
    "resource provider set": Command(options={"--name": 0, "--parent-provider": 14}),
    "resource provider show": Command(options={"--allocations": 0}),
    "resource provider trait delete": Command(6, (SOME,)),
    "resource provider trait list": Command(6, (SOME,)),
    "resource provider trait set": Command(6, (SOME,), {"--trait": 6}),
    "resource provider usage show": Command(),
    "resource usage show": Command(9, ("project",), {"--user-id": 9}),
    "trait create": Command(6, ("CUSTOM_NO",)),
    "trait delete": Command(6, ("CUSTOM_NO",)),
    "trait list": Command(6, (), {"--name": 6, "--associated": 6}),
    "trait show": Command(6, ("CUSTOM_NO",)),
}

CANDIDATES = ("allocation candidate list", "--resource", "VCPU=1")
BEGINNINGS: Mapping[tuple[str, ...], int] = {
    ("resource provider list", "--member-of", SOME): 3,
    ("resource provider list", "--aggregate-uuid", SOME): 3,
    ("resource provider list", "--resource", "VCPU=1"): 4,
    ("resource provider list", "--in-tree", SOME): 14,
    ("resource provider list", "--required", "HW_CPU_X86_AVX"): 18,
    ("resource provider list", "--forbidden", "HW_CPU_X86_AVX"): 22,
    ("resource provider list", "--required", "HW_CPU_X86_AVX,HW_CPU_X86_SSE"): 39,
    ("resource provider create", "no", "--parent-provider", SOME): 14,
    ("resource provider set", SOME, "--name", "no", "--parent-provider", SOME): 14,
    ("resource provider inventory set", SOME, "--aggregate"): 3,
    ("resource provider aggregate set", SOME, "--generation", "0"): 19,
    (*CANDIDATES, "--limit", "1"): 16,
    (*CANDIDATES, "--required", "HW_CPU_X86_AVX"): 17,
    (*CANDIDATES, "--member-of", SOME): 21,
    (*CANDIDATES, "--aggregate-uuid", SOME): 21,
    (*CANDIDATES, "--forbidden", "HW_CPU_X86_AVX"): 22,
    (*CANDIDATES, "--group", "1", "--resource", "VCPU=1"): 25,
    (*CANDIDATES, "--required", "HW_CPU_X86_AVX,HW_CPU_X86_SSE"): 39,
}
"""Command lines whose options the client rejects before a minor version."""
