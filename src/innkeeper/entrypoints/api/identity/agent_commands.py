"""Commands that issue and revoke agents' credentials, for operators on the service's machine.

The commands work before the first administrator exists. They also work if Keystone issues the
tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.ids import IdSource
from innkeeper.engine.database import Database
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.compute.hosts.agent_schemas import HOST_PATTERNS_MAX, LIFETIME_S_MAX
from innkeeper.entrypoints.api.identity import private_files
from innkeeper.entrypoints.api.patterns import HOST_PATTERN, PATTERN_HOSTS, WORDS
from innkeeper.systems.identity import agent_credentials

NAME_MAX = 200
DAY_S = 24 * 3600
DAYS_MAX = LIFETIME_S_MAX // DAY_S


def carry_out(
    database: Database, options: Mapping[str, Any], ids: IdSource, now: datetime
) -> list[str]:
    """Issue a credential, or revoke all credentials of an agent. Returns the lines to print.

    Raises :class:`Invalid` for invalid options.
    """
    name: str = options["agent_name"]
    _must_fit(name, HOST_PATTERN, "agent name")
    if options["revoke"]:
        count = database.write(lambda tx: agent_credentials.revoke_all(tx, name))
        return [f"{count} credentials of the agent {name} are revoked."]
    hosts: Sequence[str] = options["agent_hosts"] or ()
    for pattern in hosts:
        _must_fit(pattern, PATTERN_HOSTS, "pattern of host names")
    if len(hosts) > HOST_PATTERNS_MAX:
        raise Invalid(f"A credential can have at most {HOST_PATTERNS_MAX} patterns of host names.")
    days = options["days"]
    if days is not None and not 1 <= days <= DAYS_MAX:
        raise Invalid(f"The lifetime of a credential must be 1 to {DAYS_MAX} days.")
    into: Path | None = options["into"]

    def issue(tx: Tx) -> str:
        _, text = agent_credentials.issue(
            tx,
            name,
            hosts=hosts,
            lifetime_s=None if days is None else days * DAY_S,
            is_replacing=options["replace"],
            ids=ids,
            now=now,
        )
        if into is None:
            return text
        # Write the file before the commit, so that no valid credential is ever lost.
        private_files.write(into, text + "\n")
        return f"The credential of the agent {name} is in {into.resolve()}."

    return [database.write(issue)]


def _must_fit(text: str, pattern: str, noun: str) -> None:
    if len(text) > NAME_MAX or re.search(pattern, text) is None:
        raise Invalid(
            f"{text!r} is not a valid {noun}. {WORDS[pattern]} The maximum length is {NAME_MAX}."
        )
