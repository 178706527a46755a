"""Runs ``innkeeper placement-import``. It connects to both services, and starts the import."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, TextIO

from rich.progress import MofNCompleteColumn, TimeElapsedColumn

from innkeeper.clients import logins
from innkeeper.clients.logins import GivenToken
from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.cli.placement_import.importing import ExitStatus, PlacementImport
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.options import FROM_TOKEN, TO_TOKEN
from innkeeper.terminal.ending import run_command
from innkeeper.terminal.progress import Bars, Lines, StepProgress

PARTS_PER_LINE_MIN = 100
"""A step with fewer parts prints lines only at its beginning and its end."""


def run(options: Mapping[str, Any]) -> int:
    """Run the import or the comparison, and return the exit status."""
    return run_command(
        "placement-import",
        lambda: _run(options),
        # The reader closed the output, which was not empty, so the services differ.
        closed=ExitStatus.DIFFERENT,
        memory="there is not enough memory for the content of both services.",
        interrupted="interrupted; run the command again to continue.",
    )


def progress_on(stream: TextIO) -> StepProgress:
    """Return an object that shows progress as bars on a terminal, and as lines elsewhere."""
    if not stream.isatty():
        return Lines(stream, parts_min=PARTS_PER_LINE_MIN)
    return Bars(stream, MofNCompleteColumn(), TimeElapsedColumn())


def _run(options: Mapping[str, Any]) -> int:
    with (
        closing(_service("source", "from", FROM_TOKEN, options)) as source,
        closing(_service("target", "to", TO_TOKEN, options)) as target,
    ):
        return PlacementImport(
            source,
            target,
            others=Others(options["others"]),
            dry_run=options["dry_run"],
            verify_only=options["verify_only"],
            jobs=options["jobs"],
            progress=progress_on(sys.stderr),
            wait=time.sleep,
            output=sys.stdout,
            errors=sys.stderr,
        ).run()


def _service(name: str, side: str, variable: str, options: Mapping[str, Any]) -> PlacementApi:
    cloud, url, token = (options[f"{side}_{key}"] for key in ("cloud", "url", "token"))
    ca_file = options["cacert"] or os.environ.get("OS_CACERT")
    login: logins.TokenSource
    if cloud:
        if token:
            raise Invalid(f"Give either --{side}-token or --{side}-cloud, not both.")
        login = logins.from_cloud(cloud, os.environ)
        ca_file = login.ca_file or ca_file
    else:
        token = token or os.environ.get(variable)
        if not url or not token:
            raise Invalid(
                f"The {name} is not given. Give --{side}-cloud, or --{side}-url with a token in "
                f"{variable} or --{side}-token."
            )
        login = GivenToken(token)
    return PlacementApi(
        name,
        url,
        login,
        timeout_s=options["timeout"],
        connections_max=options["jobs"],
        wait=time.sleep,
        clock=time.monotonic,
        ca_file=ca_file,
    )
