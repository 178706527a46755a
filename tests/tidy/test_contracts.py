"""The contracts between layers cover the whole house and have no way around them."""

from __future__ import annotations

import configparser

from tests.tidy.tree import ROOT, SOURCE

PROGRAMS = ("cli", "console", "agent")
"""Entrypoints that reach the core over HTTP only."""


def contracts() -> configparser.ConfigParser:
    """Read the contracts as the checker reads them."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return parser


def test_no_import_is_excepted() -> None:
    excepted = [
        section
        for section in contracts().sections()
        if contracts().has_option(section, "ignore_imports")
    ]
    assert excepted == []


def test_every_rooms_queries_are_protected() -> None:
    """A module that is added without its contract is open to every room."""
    modules = {path.stem for path in (SOURCE / "store" / "queries").glob("*.py")} - {"__init__"}
    protected = {
        contracts()[section]["protected_modules"].split()[0].rpartition(".")[2]
        for section in contracts().sections()
        if section.startswith("importlinter:contract:queries-")
    }
    assert modules == protected


def test_every_program_is_kept_out_of_the_core() -> None:
    sources = contracts()["importlinter:contract:programs-over-http"]["source_modules"].split()
    built = [name for name in PROGRAMS if (SOURCE / "entrypoints" / name).is_dir()]
    assert sources == [f"innkeeper.entrypoints.{name}" for name in built]
