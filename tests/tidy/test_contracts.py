"""The import contracts cover the whole source, without exceptions."""

from __future__ import annotations

import configparser

from tests.tidy.tree import ROOT, SOURCE

PROGRAMS = ("cli", "console", "agent")
"""Entrypoints that reach the core only over HTTP."""


def contracts() -> configparser.ConfigParser:
    """Read the contracts as the import checker does."""
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


def test_all_queries_are_protected() -> None:
    """Without a contract, every room could import a new folder of queries."""
    written = {path.stem for path in (SOURCE / "store" / "queries").iterdir()}
    assert written - {"__init__", "__pycache__"} == set(query_contracts())
    for room, section in query_contracts().items():
        assert section["protected_modules"].split() == [f"innkeeper.store.queries.{room}"]
        # A contract for a folder, as a package, protects the modules in it.
        assert section.getboolean("as_packages", fallback=True)


def test_queries_are_for_their_room_and_the_snapshot() -> None:
    for room, section in query_contracts().items():
        allowed = {f"innkeeper.systems.{room}", "innkeeper.snapshot"}
        assert set(section["allowed_importers"].split()) == allowed


def query_contracts() -> dict[str, configparser.SectionProxy]:
    """The contracts that protect queries, by room."""
    start = "importlinter:contract:queries-"
    parser = contracts()
    return {
        name.removeprefix(start): parser[name]
        for name in parser.sections()
        if name.startswith(start)
    }


def test_every_program_is_kept_out_of_the_core() -> None:
    sources = contracts()["importlinter:contract:programs-over-http"]["source_modules"].split()
    built = [name for name in PROGRAMS if (SOURCE / "entrypoints" / name).is_dir()]
    assert sources == [f"innkeeper.entrypoints.{name}" for name in built]


def test_entrypoints_do_not_import_the_store() -> None:
    contract = contracts()["importlinter:contract:no-store-in-entrypoints"]
    assert contract["source_modules"].split() == ["innkeeper.entrypoints"]
    assert contract["forbidden_modules"].split() == ["innkeeper.store"]
