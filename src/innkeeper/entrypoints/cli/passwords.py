"""Options with which a command gets a password, as a text or in a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from osc_lib import exceptions as osc_exceptions


def add_password(parser: argparse.ArgumentParser, whose: str) -> None:
    """Declare the options for a password. In their help, ``whose`` follows the word "password"."""
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--password", help=f"password {whose}")
    given.add_argument(
        "--password-file", metavar="FILE", help="file whose first line is the password"
    )


def given_password(parsed_args: argparse.Namespace) -> str | None:
    """Return the password from its option or its file."""
    if parsed_args.password_file is None:
        password: str | None = parsed_args.password
        return password
    try:
        lines = Path(parsed_args.password_file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise osc_exceptions.CommandError(f"The password cannot be read: {error}.") from error
    if not lines or not lines[0]:
        raise osc_exceptions.CommandError(f"{parsed_args.password_file} has no password.")
    return lines[0]
