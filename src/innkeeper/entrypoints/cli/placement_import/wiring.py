"""The import's composition root: options and environment become two services and a run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from io import TextIOWrapper
from typing import Any

from innkeeper.clients import logins
from innkeeper.clients.logins import GivenToken
from innkeeper.clients.placement import PlacementApi
from innkeeper.domain.errors import Invalid, Refusal
from innkeeper.entrypoints.cli.placement_import import options as import_options
from innkeeper.entrypoints.cli.placement_import import progress
from innkeeper.entrypoints.cli.placement_import.importing import ExitStatus, Importing
from innkeeper.entrypoints.cli.placement_import.objections import Others

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""


def run(options: Mapping[str, Any]) -> int:
    """Import, or only compare; gives the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # Names may hold what a terminal's encoding cannot show.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    services: list[PlacementApi] = []
    try:
        services.append(_service("source", "from", import_options.FROM_TOKEN, options))
        services.append(_service("target", "to", import_options.TO_TOKEN, options))
        status = _import(services[0], services[1], options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever reads the findings has seen enough. There are some, so the sides differ.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitStatus.DIFFERENT
    except Refusal as refusal:
        sys.stderr.write(f"innkeeper placement-import: {refusal.message}\n")
        return ExitStatus.FAILED
    except MemoryError:
        sys.stderr.write("innkeeper placement-import: both sides do not fit into the memory.\n")
        return ExitStatus.FAILED
    except KeyboardInterrupt:
        sys.stderr.write("innkeeper placement-import: interrupted; run it again to go on.\n")
        return INTERRUPTED
    finally:
        for service in services:
            service.close()


def _import(source: PlacementApi, target: PlacementApi, options: Mapping[str, Any]) -> int:
    return Importing(
        source,
        target,
        others=Others(options["others"]),
        dry_run=options["dry_run"],
        verify_only=options["verify_only"],
        jobs=options["jobs"],
        steps=progress.shown_on(sys.stderr),
        wait=time.sleep,
        told=sys.stdout,
        warned=sys.stderr,
    ).run()


def _service(name: str, side: str, variable: str, options: Mapping[str, Any]) -> PlacementApi:
    cloud, url = options[f"{side}_cloud"], options[f"{side}_url"]
    token = options[f"{side}_token"]
    ca_file = options["cacert"] or os.environ.get("OS_CACERT")
    if cloud:
        if token:
            raise Invalid(f"--{side}-token and --{side}-cloud exclude each other.")
        named = os.environ.get("OS_CLIENT_CONFIG_FILE")
        login = logins.from_clouds_file(cloud, [named] if named else logins.SEARCHED)
        return _api(name, url, login, login.ca_file or ca_file, options)
    token = token or os.environ.get(variable)
    if not url or not token:
        raise Invalid(
            f"Where is the {name}? Give --{side}-cloud, or --{side}-url with a token in "
            f"{variable} or --{side}-token."
        )
    return _api(name, url, GivenToken(token), ca_file, options)


def _api(
    name: str,
    url: str | None,
    login: logins.TokenSource,
    ca_file: str | None,
    options: Mapping[str, Any],
) -> PlacementApi:
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
