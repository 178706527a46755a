"""Argument types that several command lines share."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from innkeeper.domain.numerals import whole_of

SEED_MAX = 2**63 - 1


def names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list; blanks and empty parts are dropped."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def whole(least: int, most: int) -> Callable[[str], int]:
    """An argument type for whole numbers between two bounds, both included."""

    def parse(text: str) -> int:
        number = whole_of(text)
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number between {least} and {most}")
        return number

    return parse


seed = whole(0, SEED_MAX)


def describe(command: argparse.ArgumentParser, description: str, epilog: str) -> None:
    """Set the texts around a command's options; their line breaks are kept."""
    command.description = description
    command.epilog = epilog
    command.formatter_class = argparse.RawDescriptionHelpFormatter
