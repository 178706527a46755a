"""Names of architectures and ways to run servers, each of which has several spellings."""

from __future__ import annotations

from collections.abc import Mapping

SPELLINGS: Mapping[str, str] = {
    "amd64": "x86_64",
    "x86-64": "x86_64",
    "x64": "x86_64",
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86": "i686",
    "arm64": "aarch64",
    "arm": "armv7l",
    "powerpc": "ppc",
    "powerpc64": "ppc64",
    "powerpc64le": "ppc64le",
    # Ways to run servers.
    "vmware esx": "vmware",
    "xapi": "xen",
    "pv": "xen",
    "hv": "hvm",
    "baremetal": "ironic",
}
"""Other spellings, and the one that is compared."""


def canonical(name: str) -> str:
    """The one spelling that all of a name's come to."""
    lower = name.strip().lower()
    return SPELLINGS.get(lower, lower)
