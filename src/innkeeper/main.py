"""The program's entry point, which parses the command line.

The module ``commands`` runs the command.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from innkeeper.entrypoints.agent import options as agent_options
from innkeeper.entrypoints.cli.placement_import import options as import_options
from innkeeper.entrypoints.replayer import options as replayer_options
from innkeeper.entrypoints.simulator import options as simulator_options
from innkeeper.settings import KEYS, SettingsError, load
from innkeeper.terminal.arguments import names


def parser() -> argparse.ArgumentParser:
    """Return the parser for all commands.

    An option with the name of a setting overrides the setting.
    """
    program = argparse.ArgumentParser(
        prog="innkeeper", description="Keeps the capacity of a cloud.", allow_abbrev=False
    )
    commands = program.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = partial(commands.add_parser, allow_abbrev=False)
    _add_serve(add("serve", help="serve the APIs"))
    agent_options.add(add("agent", help="run an agent for hosts"))
    import_options.add(add("placement-import", help="copy a running Placement into this one"))
    simulator_options.add(add("simulate", help="replay a trace of servers on simulated hosts"))
    replayer_options.add(add("replay", help="repeat a recorded decision, and explain it"))
    audit = add("audit", help="check that the database keeps all invariants")
    _add_settings(audit)
    audit.add_argument("--repair", action="store_true", help="repair what can safely be repaired")
    audit.add_argument("--dry-run", action="store_true", help="show what --repair would do")
    audit.add_argument(
        "--with-zones", action="store_true", help="ask all child zones which servers they have"
    )
    audit.add_argument(
        "--with-pods", action="store_true", help="ask all pods which servers and volumes they have"
    )
    audit.add_argument("--json", action="store_true", help="print the result as JSON")
    _add_database(add("db", help="maintain the database"))
    _add_settings(add("admin-password", help="set a new administrator's password"))
    key = add("encryption-key", help="maintain the keys that encrypt secrets")
    key.add_argument(
        "act",
        choices=("show", "rotate", "drop-old", "reset"),
        help="show: list the keys; rotate: re-encrypt all secrets with a new key; drop-old: delete "
        "unused keys; reset: delete secrets that no key decrypts",
    )
    _add_settings(key)
    key.add_argument("--encryption-key-file", help="file with the encryption keys")
    _add_credential(add("agent-credential", help="issue or revoke an agent's credentials"))
    return program


def _add_serve(serve: argparse.ArgumentParser) -> None:
    _add_settings(serve)
    serve.add_argument("--host", help="address to listen on")
    serve.add_argument("--port", type=int, help="port to listen on; 0 selects a free one")
    serve.add_argument("--workers", type=int, help="number of processes that serve the port")
    serve.add_argument("--apis", type=names, help="comma-separated list of APIs to serve")
    serve.add_argument("--auth", help="how clients log in: none, builtin or keystone")
    serve.add_argument("--policy-file", help="YAML file that overrides policy rules")
    serve.add_argument("--public-url", help="address of the service in links, as clients see it")
    for api in ("identity", "placement", "compute", "image", "volume", "reservation"):
        serve.add_argument(f"--{api}-prefix", help=f"path of the {api} API; may be empty")
    serve.add_argument(
        "--demo-hosts", type=int, default=0, metavar="N", help="start an agent with N fake hosts"
    )
    # A supervisor passes these options to the workers that it starts.
    serve.add_argument("--with-parent", type=int, help=argparse.SUPPRESS)
    serve.add_argument("--heartbeat", type=int, help=argparse.SUPPRESS)
    serve.add_argument("--instead-of", help=argparse.SUPPRESS)


def _add_database(database: argparse.ArgumentParser) -> None:
    acts = database.add_subparsers(dest="act", required=True, metavar="ACT")
    add = partial(acts.add_parser, allow_abbrev=False)
    _add_settings(add("upgrade", help="upgrade the schema"))
    _add_settings(add("check", help="show missing upgrade steps"))
    backup = add("backup", help="back up the database, even while it is in use")
    backup.add_argument(
        "file", type=Path, metavar="FILE", help="the backup to create; only you can read it"
    )
    backup.add_argument("--force", action="store_true", help="overwrite an existing file")
    _add_settings(backup)
    restore = add("restore", help="restore the database from a backup")
    restore.add_argument("file", type=Path, metavar="FILE", help="the backup")
    _add_settings(restore)


def _add_credential(credential: argparse.ArgumentParser) -> None:
    credential.add_argument("agent_name", metavar="NAME", help="the agent's name")
    credential.add_argument(
        "--hosts",
        dest="agent_hosts",
        action="append",
        metavar="PATTERN",
        help="hosts that the agent may report, such as 'rack-1-*'; may be repeated",
    )
    credential.add_argument(
        "--days", type=int, help="lifetime of the credential; default: unlimited"
    )
    credential.add_argument(
        "--replace", action="store_true", help="revoke the agent's other credentials"
    )
    credential.add_argument(
        "--revoke", action="store_true", help="revoke all the agent's credentials, and issue none"
    )
    credential.add_argument(
        "--file",
        dest="into",
        type=Path,
        help="write the credential to this file; only you can read it",
    )
    _add_settings(credential)


def _add_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", type=Path, help="settings file (TOML)")
    command.add_argument("--data-dir", help="folder of the embedded database")
    command.add_argument("--database-url", help="URL of the database, if it is not embedded")


HEAP_BLOCK_BYTES = 31 * 2**20
"""The size of a freed block. A block of more than 32 MiB would have no effect on glibc."""
STANDALONE = {
    "agent": "innkeeper.entrypoints.agent.wiring",
    "placement-import": "innkeeper.entrypoints.cli.placement_import.wiring",
    "simulate": "innkeeper.entrypoints.simulator.wiring",
    "replay": "innkeeper.entrypoints.replayer.wiring",
}
"""Programs that need neither the settings nor the modules of the service."""


def keep_freed_memory() -> None:
    """Let the C library reuse the memory of large arrays.

    By default, glibc soon gives the memory of freed arrays back to the kernel, which then clears
    the pages of the next arrays. With the arrays of 5,000 hosts, the refusal of a lease takes 1.4
    times as long. After a large block was freed, glibc keeps up to twice its size per thread. The
    block of this function is never written, so it takes no memory itself.
    """
    block = bytes(HEAP_BLOCK_BYTES)
    del block


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit status."""
    keep_freed_memory()
    options = vars(parser().parse_args(argv))
    if options["command"] in STANDALONE:
        status: int = import_module(STANDALONE[options["command"]]).run(options)
        return status
    overrides: dict[str, Any] = {k: v for k, v in options.items() if k in KEYS}
    try:
        settings = load(options.get("config"), overrides=overrides)
        # Imported modules are never garbage, and scanning them would take a quarter of the start
        # time.
        gc.disable()
        from innkeeper import commands  # noqa: PLC0415 - errors in settings are reported first

        gc.freeze()
        gc.enable()
        return commands.run(options["command"], settings, options)
    except SettingsError as error:
        sys.stderr.write(f"innkeeper: {error}\n")
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
