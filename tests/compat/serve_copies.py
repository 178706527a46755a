"""The program that ``openstack_copies`` starts: it forks for each command.

A line holds the words of a command and its additional environment variables. The answer is one
line with the exit status and the output of the two streams. The commands share only the
imported modules of the client.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

import blazarclient
import openstackclient
import osc_placement
from openstackclient import shell
from openstackclient.common import clientmanager

# The client asks a port without a listener for its versions. When it fails it has imported
# all that it needs, and keeps no state yet.
FIRST_WORDS = (
    *("--os-auth-type", "admin_token", "--os-token", "none"),
    *("--os-endpoint", "http://127.0.0.1:1", "resource", "provider", "list", "-f", "json"),
)
WITHIN_S = 180
READ_BEFORE = (
    *("openstackclient.common", "openstackclient.compute", "openstackclient.identity.v3"),
    *("openstackclient.image.v2", "osc_placement.resources", "blazarclient.v1"),
)
FAILED = 1
OF_DNS = "designateclient.osc.plugin"
"""The client of Designate, which Neutron needs. Its zones are those of the DNS, and its commands
would replace ours of the same names."""
BROKEN = "reservation_host_unset"
"""A command whose class python-blazarclient 4.6 misspells; the shell says so at each start."""


def main() -> None:
    """Run commands until there are no more."""
    clientmanager.PLUGIN_MODULES[:] = [
        each for each in clientmanager.PLUGIN_MODULES if each.__name__ != OF_DNS
    ]
    _read_modules()
    logging.getLogger("stevedore").addFilter(_is_of_use)
    logging.getLogger("stevedore.extension").addFilter(_is_of_use)
    answers, errors = os.fdopen(os.dup(1), "w"), os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        shell.main(list(FIRST_WORDS))
        # Every shell adds its own log handlers. With the first shell's handlers, output would
        # appear twice.
        logging.getLogger().handlers.clear()
        os.dup2(errors, 2)
    with answers:
        # The client waits for each answer: nothing is read ahead before a fork.
        for line in iter(sys.stdin.readline, ""):
            words, variables = json.loads(line)
            answers.write(json.dumps(_run(words, variables)) + "\n")
            answers.flush()


def _is_of_use(record: logging.LogRecord) -> bool:
    return BROKEN not in record.getMessage()


def _read_modules() -> None:
    for package in (openstackclient, osc_placement, blazarclient):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.startswith(READ_BEFORE):
                importlib.import_module(found.name)


def _run(words: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        copy = os.fork()
        if copy == 0:
            os._exit(_be_command(words, variables, output, errors))
        _, ended = os.waitpid(copy, 0)
        return os.waitstatus_to_exitcode(ended), _whole(output), _whole(errors)


def _be_command(
    words: Sequence[str], variables: Mapping[str, str], output: IO[bytes], errors: IO[bytes]
) -> int:
    signal.alarm(WITHIN_S)
    os.environ.update(variables)
    for number, file in enumerate((output, errors), start=1):
        os.dup2(file.fileno(), number)
    try:
        status = shell.main(list(words))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else FAILED
    sys.stdout.flush()
    sys.stderr.flush()
    return int(status or 0)


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    main()
