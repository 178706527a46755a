"""The dashboard and the alert rules use only existing metrics, and are explained."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from docs import generate
from innkeeper.engine import metrics
from innkeeper.entrypoints.api import metrics as api_metrics
from tests.tidy.tree import ROOT, python_files

RULES = ROOT / "ops" / "innkeeper.rules.yml"
DASHBOARD = ROOT / "ops" / "innkeeper-dashboard.json"
PAGE = ROOT / "docs" / "operations" / "monitoring.md"
LIST = ROOT / "docs" / "operations" / "watching.md"
METRIC = re.compile(r"\b(?:innkeeper|process|python)_\w+")
LEVELS = ("info", "warning", "error")
OF_A_HISTOGRAM = ("_bucket", "_count", "_sum")
TYPE = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)


def exposed() -> set[str]:
    """The names of all metrics of a service, including the parts of histograms."""
    assert api_metrics.__name__, "imported, so that its metrics are registered"
    names: set[str] = set()
    for name, kind in TYPE.findall(metrics.exposition().decode()):
        names |= {name + end for end in OF_A_HISTOGRAM} if kind == "histogram" else {name}
    return names


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def expressions() -> Iterator[str]:
    yield from (each["expr"] for each in alerts())
    yield from (target["expr"] for each in panels() for target in each["targets"])


def test_every_named_metric_exists_in_the_service() -> None:
    spoken_of = {name for text in expressions() for name in METRIC.findall(text)}
    assert spoken_of - exposed() == set()


def test_everything_that_the_service_tells_is_shown_and_explained() -> None:
    shown = {
        _whole(name)
        for each in panels()
        for target in each["targets"]
        for name in METRIC.findall(target["expr"])
    }
    ours = {_whole(name) for name in exposed() if name.startswith("innkeeper_")}
    # The time when a counter was created is not shown.
    told = {name for name in ours if not name.endswith("_created")}
    unseen = sorted(told - shown)
    assert unseen == [], f"No panel of ops/{DASHBOARD.name} shows {unseen}."
    page = LIST.read_text(encoding="utf-8")
    untold = sorted(name for name in told if f"`{name}`" not in page)
    assert untold == [], f"docs/operations/{LIST.name} has no row for {untold}."


def _whole(name: str) -> str:
    return re.sub(r"_(bucket|count|sum)$", "", name)


def test_expressions_are_whole() -> None:
    for text in expressions():
        bare = re.sub(r'"[^"]*"', "", text)
        for opening, closing in ("()", "[]", "{}"):
            assert bare.count(opening) == bare.count(closing), text


def test_every_alert_says_what_and_what_to_do_and_is_explained() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [each["alert"] for each in alerts()]
    assert len(set(names)) == len(names)
    for each in alerts():
        assert each["annotations"].keys() == {"summary", "action"}
        assert each["labels"]["severity"] in ("page", "ticket")
        assert f"`{each['alert']}`" in page


def test_the_page_about_audits_names_every_invariant() -> None:
    text = generate.AUDIT_PAGE.read_text(encoding="utf-8")
    assert text == generate.with_invariants(text), "Run `make reference`."
    assert "`over-capacity`" in text


def logged_events() -> set[str]:
    """The events of all log lines of the program and its agent."""
    return {
        str(node.args[0].value)
        for file in python_files("src")
        for node in ast.walk(file.tree())
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in LEVELS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "LOG"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }


def test_every_event_of_the_log_is_explained() -> None:
    pages = (ROOT / "docs").glob("*/*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    untold = sorted(name for name in logged_events() if f"`{name}`" not in text)
    assert untold == [], f"docs/operations/{LIST.name} has no row for {untold}."


def test_every_explained_event_is_logged() -> None:
    _, table = LIST.read_text(encoding="utf-8").split("| Event | Level | Meaning |\n")
    told = {
        name
        for line in table.split("\n\n")[0].splitlines()
        for name in re.findall(r"`(\w+)`", line.split(" | ")[0])
    }
    assert told
    source = "\n".join(file.text for file in python_files("src"))
    assert {name for name in told if f'"{name}"' not in source} == set()


def test_panels_do_not_lie_over_each_other() -> None:
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels()]
    assert len(set(places)) == len(places)
    assert len({each["id"] for each in panels()}) == len(places)
