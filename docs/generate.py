"""Writes the pages and the picture that are generated from the program.

``make reference`` writes them. A test compares them with the program, so a change of a summary,
a rule or a version is reviewed together with its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from docs import calendar_picture
from innkeeper.domain.slices import Serving
from innkeeper.engine.maintenance.invariants import INVARIANTS
from innkeeper.engine.maintenance.pod_audit import POD_INVARIANTS
from innkeeper.engine.maintenance.zone_audit import ZONE_INVARIANTS
from innkeeper.entrypoints.api.routing import Api
from innkeeper.entrypoints.api.tables import APIS

FOLDER = Path(__file__).parent / "reference"
WRITTEN_BY_A_PROGRAM = "<!-- Written by `make reference`; edit the program instead. -->"


def cell(text: str) -> str:
    """Put a text into one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Draw a table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def page(title: str, intro: str, parts: Mapping[str, list[str]]) -> str:
    """Assemble a page with a part per API."""
    lines = [f"# {title}", "", WRITTEN_BY_A_PROGRAM, "", intro, ""]
    for name, part in parts.items():
        lines += [f"## {name}", "", *part]
    return "\n".join(lines).rstrip() + "\n"


def microversions(apis: Mapping[str, Api]) -> str:
    """What each microversion changed."""
    intro = (
        "A client requests a version in the header `OpenStack-API-Version`.\n"
        "Without that header the client gets the oldest version.\n"
        "Versions that are not listed change nothing in this service."
    )
    parts = {
        name: [
            f"From {api.versions.oldest} to {api.versions.newest}.",
            "",
            *table(
                ("Version", "What it changed"),
                ((f"`{step.version}`", cell(step.summary)) for step in api.versions.steps),
            ),
        ]
        for name, api in apis.items()
        if api.versions is not None
    }
    return page("Microversions", intro, parts)


def routes(apis: Mapping[str, Api]) -> str:
    """All routes, and the rule that guards each."""
    intro = (
        "This page lists all methods of all paths, with the default prefixes.\n"
        "The policy rule of a route must allow the caller; *open* routes need no token.\n"
        "The [glossary](glossary.md) explains terms such as pcloud, freepool and binding."
    )
    head = ("Method and path", "What it does", "Rule", "Versions")
    parts = {}
    for name, api in apis.items():
        prefix = getattr(Serving(), f"{name}_prefix")
        rows = (
            (
                f"`{route.method} {prefix}{route.path}`",
                cell(route.summary),
                f"`{route.rule.name}`" if route.rule else "*open*",
                span(route.since, route.until),
            )
            for route in api.routes
        )
        parts[name] = table(head, rows)
    return page("Routes", intro, parts)


def span(since: object, until: object) -> str:
    """The versions that have a route."""
    first = f"from {since}" if since else ""
    last = f"to {until}" if until else ""
    return " ".join(filter(None, (first, last))) or "all"


def rules(apis: Mapping[str, Api]) -> str:
    """All policy rules with their defaults."""
    intro = (
        "To replace the default of a rule, an operator writes the rule in `policy.yaml`.\n"
        "Rules and defaults are in the language of oslo.policy.\n"
        "The default `@` allows every caller with a valid token."
    )
    head = ("Rule", "Default", "What it is about")
    parts = {
        name: table(
            head,
            (
                (
                    f"`{rule.name}`",
                    f"`{rule.default}`" if rule.default else "*everybody*",
                    cell(rule.description),
                )
                for rule in sorted(api.rules, key=lambda rule: rule.name)
            ),
        )
        for name, api in apis.items()
    }
    return page("Policy rules", intro, parts)


PAGES: Mapping[str, Callable[[Mapping[str, Api]], str]] = {
    "microversions.md": microversions,
    "routes.md": routes,
    "rules.md": rules,
}


AUDIT_PAGE = Path(__file__).parent / "operations" / "audit.md"
BEGIN, END = "<!-- begin: invariants -->\n", "<!-- end: invariants -->\n"


def invariants() -> str:
    """The table of all invariants that an audit checks, for a part of its page."""
    head = ("Room", "Kind", "What is always true", "`--repair`", "Otherwise")
    rows = (
        (
            each.room,
            f"`{each.kind}`",
            cell(each.rule),
            "by hand" if each.repair is None else cell(each.repair),
            cell(each.advice),
        )
        for each in (*INVARIANTS, *ZONE_INVARIANTS, *POD_INVARIANTS)
    )
    return "\n".join(("", *table(head, rows), ""))


def with_invariants(text: str) -> str:
    """The page about audits with the current table of invariants."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + invariants() + END + after


def main() -> None:
    """Write all pages, and the picture."""
    for name, make in PAGES.items():
        (FOLDER / name).write_text(make(APIS), encoding="utf-8")
    text = AUDIT_PAGE.read_text(encoding="utf-8")
    AUDIT_PAGE.write_text(with_invariants(text), encoding="utf-8")
    calendar_picture.PATH.write_text(calendar_picture.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
