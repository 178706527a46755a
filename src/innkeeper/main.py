"""The one program; ``commands`` carries it out, this file only parses."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from innkeeper.entrypoints.agent import options as agent_options
from innkeeper.entrypoints.cli.placement_import import options as import_options
from innkeeper.entrypoints.replayer import options as replayer_options
from innkeeper.entrypoints.simulator import options as simulator_options
from innkeeper.settings import SettingsError, load


def parser() -> argparse.ArgumentParser:
    """All commands and their options. Options with a setting's name override that setting."""
    made = argparse.ArgumentParser(
        prog="innkeeper", description="Keeps the capacity of a cloud.", allow_abbrev=False
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve the APIs", allow_abbrev=False)
    _add_settings(serve)
    serve.add_argument("--host", help="address to listen on")
    serve.add_argument("--port", type=int, help="port to listen on; 0 takes a free one")
    serve.add_argument("--workers", type=int, help="how many processes serve the port")
    serve.add_argument("--apis", type=_names, help="APIs to serve, with commas between them")
    serve.add_argument("--auth", help="none, builtin or keystone")
    serve.add_argument("--policy-file", help="overrides of policy rules, as YAML")
    serve.add_argument("--public-url", help="address that clients use, for links")
    for api in ("identity", "placement", "compute", "image", "reservation"):
        serve.add_argument(f"--{api}-prefix", help=f"path of the {api} API; may be empty")
    serve.add_argument(
        "--demo-hosts", type=int, default=0, metavar="N", help="start an agent with N fake hosts"
    )
    # What a supervisor tells its workers; nobody else has a use for it.
    serve.add_argument("--with-parent", type=int, help=argparse.SUPPRESS)
    serve.add_argument("--pulse", type=int, help=argparse.SUPPRESS)
    serve.add_argument("--instead-of", help=argparse.SUPPRESS)
    agent_options.add(commands.add_parser("agent", help="speak for hosts", allow_abbrev=False))
    import_options.add(
        commands.add_parser(
            "placement-import", help="copy a running Placement into this one", allow_abbrev=False
        )
    )
    simulator_options.add(
        commands.add_parser(
            "simulate", help="replay a trace of servers on made-up hosts", allow_abbrev=False
        )
    )
    replayer_options.add(
        commands.add_parser(
            "replay", help="make a recorded decision again, and explain it", allow_abbrev=False
        )
    )
    audit = commands.add_parser(
        "audit", help="check every invariant against the store", allow_abbrev=False
    )
    _add_settings(audit)
    audit.add_argument("--repair", action="store_true", help="repair what can be, safely")
    audit.add_argument("--dry-run", action="store_true", help="tell what --repair would do")
    audit.add_argument("--json", action="store_true", help="tell it as JSON, for programs")
    database = commands.add_parser("db", help="care for the database", allow_abbrev=False)
    acts = database.add_subparsers(dest="act", required=True, metavar="ACT")
    upgrade = acts.add_parser("upgrade", help="bring the schema up", allow_abbrev=False)
    _add_settings(upgrade)
    check = acts.add_parser("check", help="tell which steps it lacks", allow_abbrev=False)
    _add_settings(check)
    backup = acts.add_parser("backup", help="save it while it is used", allow_abbrev=False)
    backup.add_argument("file", type=Path, metavar="FILE", help="where to; for you alone")
    backup.add_argument("--force", action="store_true", help="overwrite what is there")
    _add_settings(backup)
    restore = acts.add_parser("restore", help="put a saved one back", allow_abbrev=False)
    restore.add_argument("file", type=Path, metavar="FILE", help="what was saved")
    _add_settings(restore)
    password = commands.add_parser(
        "admin-password", help="give the administrator a new password", allow_abbrev=False
    )
    _add_settings(password)
    key = commands.add_parser(
        "encryption-key", help="care for the keys that seal secrets", allow_abbrev=False
    )
    key.add_argument(
        "act",
        choices=("show", "rotate", "drop-old", "reset"),
        help="show: which there are; rotate: seal all with a new one; drop-old: forget those "
        "that seal nothing; reset: forget what no key opens",
    )
    _add_settings(key)
    key.add_argument("--encryption-key-file", help="where the keys are")
    _add_credentials(commands)
    return made


def _add_credentials(commands: Any) -> None:
    credential = commands.add_parser(
        "agent-credential", help="issue a credential for an agent", allow_abbrev=False
    )
    credential.add_argument("agent_name", metavar="NAME", help="the agent's name")
    credential.add_argument(
        "--hosts",
        dest="agent_hosts",
        action="append",
        metavar="PATTERN",
        help="hosts it may report, such as 'rack-1-*'; may be given again",
    )
    credential.add_argument("--days", type=int, help="how long it lasts; without it, for good")
    credential.add_argument(
        "--replace", action="store_true", help="take back the agent's other credentials"
    )
    credential.add_argument(
        "--revoke", action="store_true", help="take all of them back, and issue none"
    )
    credential.add_argument(
        "--file", dest="into", type=Path, help="write it into a private file, not to the output"
    )
    _add_settings(credential)


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", type=Path, help="settings file (TOML)")
    command.add_argument("--data-dir", help="where the embedded database lies")
    command.add_argument("--database-url", help="database, where it is not the embedded one")


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


NOT_SETTINGS = (
    "command",
    "act",
    "config",
    "demo_hosts",
    "with_parent",
    "pulse",
    "instead_of",
    "json",
    "repair",
    "dry_run",
    "file",
    "force",
    "agent_name",
    "agent_hosts",
    "days",
    "replace",
    "revoke",
    "into",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    options = vars(parser().parse_args(argv))
    if options["command"] == "agent":
        # An agent has no settings of the service, and none of its weight either.
        from innkeeper.entrypoints.agent import wiring as agent_wiring  # noqa: PLC0415

        return agent_wiring.run(options)
    if options["command"] == "placement-import":
        # It is a client: it needs no settings either.
        from innkeeper.entrypoints.cli.placement_import import wiring as placement_import_wiring  # noqa: PLC0415

        return placement_import_wiring.run(options)
    if options["command"] == "simulate":
        from innkeeper.entrypoints.simulator import wiring as simulator_wiring  # noqa: PLC0415

        return simulator_wiring.run(options)
    if options["command"] == "replay":
        # A file is all it needs.
        from innkeeper.entrypoints.replayer import wiring as replayer_wiring  # noqa: PLC0415

        return replayer_wiring.run(options)
    overrides: dict[str, Any] = {k: v for k, v in options.items() if k not in NOT_SETTINGS}
    try:
        settings = load(options.get("config"), overrides=overrides)
        # What is imported stays: to look for garbage in it takes a quarter of a start.
        gc.disable()
        from innkeeper import commands  # noqa: PLC0415 - errors of settings answer at once

        gc.freeze()
        gc.enable()
        return commands.run(options["command"], settings, options)
    except SettingsError as error:
        sys.stderr.write(f"innkeeper: {error}\n")
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
