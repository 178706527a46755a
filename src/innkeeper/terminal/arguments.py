"""Argument types and checks that several command lines and the settings share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from urllib.parse import urlsplit

from innkeeper.domain.numerals import whole_of

SEED_MAX = 2**63 - 1


def names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list, without blanks and empty parts."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return an argument type for whole numbers between two bounds, both included."""

    def parse(text: str) -> int:
        number = whole_of(text)
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number between {least} and {most}")
        return number

    return parse


seed = whole(0, SEED_MAX)


def is_http(text: str) -> bool:
    """Return whether a text is an http or https URL with a host. A port must be valid."""
    try:
        parts = urlsplit(text)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_plain = text.isprintable() and not any(char.isspace() for char in text)
    return is_whole and has_port and is_plain


def http_url(text: str) -> str:
    """Return the text if it is an http or https URL. This function is an argument type."""
    if not is_http(text):
        raise argparse.ArgumentTypeError(f"must be an http or https address, not {text!r}")
    return text


def describe(command: argparse.ArgumentParser, description: str, epilog: str) -> None:
    """Set the help texts before and after a command's options, and keep their line breaks."""
    command.description = description
    command.epilog = epilog
    command.formatter_class = argparse.RawDescriptionHelpFormatter
