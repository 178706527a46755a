"""Everything that the program offers is documented and tested.

The offers are read from the program itself. So a new offer fails the test until it has its row and
its story.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import json
import pkgutil
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import pytest
import yaml

from docs import calendar_picture, generate
from innkeeper.domain.slices import SLICES, Serving
from innkeeper.domain.versions import Version
from innkeeper.entrypoints.api.compute import rules as server_rules
from innkeeper.entrypoints.api.compute.servers import actions as server_actions
from innkeeper.entrypoints.api.routing import Api, Route, Rule, TableAction, summary_of
from innkeeper.entrypoints.api.tables import APIS
from innkeeper.entrypoints.api.volumes import actions as volume_actions
from innkeeper.entrypoints.api.volumes import rules as volume_rules
from innkeeper.settings import KEYS
from tests.compat.differences import DIFFERENCES
from tests.scenarios.stories import LOADER
from tests.tidy.exceptions import judge
from tests.tidy.tree import ROOT, Finding, python_files

REFERENCE = ROOT / "docs" / "reference"
STORIES = ROOT / "tests" / "scenarios"
VERSION_STORIES = STORIES / "placement" / "versions"
ROW = re.compile(r"^\| `([^`]+)` \| *(.*?) *\|", re.MULTILINE)
SUPPORTED = re.compile(r"microversions (\d+\.\d+) to (\d+\.\d+)")
REFUSALS = 400
"""The lowest status of a refusal."""
FORBIDDEN = 403
MADE_BY = {"Route": 4}
"""The functions that make routes, with the position of the argument for the summary."""
OF_ACTIONS: tuple[tuple[str, tuple[Rule, ...], Mapping[str, TableAction]], ...] = (
    ("compute", server_rules.OTHER_RULES, server_actions.ACTIONS),
    ("volume", volume_rules.OTHER_RULES, volume_actions.ACTIONS),
)
"""The APIs with actions: the rules that only handlers check, and the actions."""
PLACEHOLDER = re.compile(r"\{[^}]*\}")


def rows(page: str) -> dict[str, str]:
    """Read a page's tables: the first cell, which is code, and the second."""
    path = REFERENCE / page
    assert path.exists(), f"docs/reference/{page} is missing."
    return dict(ROW.findall(path.read_text(encoding="utf-8")))


def compare(page: str, documented: Collection[str], offered: Collection[str]) -> None:
    """Check that a page has exactly the rows of what is offered."""
    missing = sorted(set(offered) - set(documented))
    stale = sorted(set(documented) - set(offered))
    assert (missing, stale) == ([], []), f"docs/reference/{page}: missing {missing}, gone {stale}"


def default_text(value: Any) -> str:
    """Return a default as the page writes it: as in the settings file."""
    return "unset" if value is None else f"`{json.dumps(value)}`"


def test_every_setting_has_a_row_with_its_default() -> None:
    documented = rows("settings.md")
    compare("settings.md", documented, KEYS)
    defaults = {
        key: default_text(getattr(kind(), key))
        for kind in SLICES.values()
        for key in kind.__struct_fields__
    }
    assert {key: documented[key] for key in defaults} == defaults


def test_every_difference_from_the_original_has_a_row() -> None:
    """All differences are in one section. Only this section may say that there are no others."""
    page = (REFERENCE / "placement.md").read_text(encoding="utf-8")
    before, section = page.split("\n## Where it differs from upstream\n")
    compare("placement.md", [name for name, _ in ROW.findall(section)], DIFFERENCES)
    *_, last = section.strip().splitlines()
    assert "no other difference" in last
    assert (before + section).count("no other difference") == 1


def registered(package: str, table: str) -> Mapping[str, Any]:
    """Find the map of what a package offers, in any of its modules."""
    home = importlib.import_module(package)
    for module in pkgutil.iter_modules(home.__path__, f"{package}."):
        found = getattr(importlib.import_module(module.name), table, None)
        if isinstance(found, Mapping):
            return found
    raise AssertionError(f"No module of {package} has a map called {table}.")


CHOOSERS = (
    ("filters.md", "innkeeper.scheduling.filters", "FILTERS"),
    ("weighers.md", "innkeeper.scheduling.weighers", "WEIGHERS"),
)


@pytest.mark.parametrize(("page", "package", "table"), CHOOSERS)
def test_every_filter_and_weigher_has_a_row_and_a_test(page: str, package: str, table: str) -> None:
    names = registered(package, table)
    assert names
    compare(page, rows(page), names)
    tests = [file.text for file in python_files("tests") if "tidy" not in file.folders]
    judge(
        "untested-chooser",
        [
            Finding(package.replace(".", "/"), 1, name)
            for name, chooser in names.items()
            if not any(name in text or last_part(chooser) in text for text in tests)
        ],
        remedy="Write a table test in tests/unit/scheduling that names it or imports its module.",
    )


def last_part(chooser: Any) -> str:
    """The name of the module that holds a filter or a weigher, as tests import it."""
    module = getattr(chooser, "__module__", None) or chooser.__name__
    return f"import {str(module).rpartition('.')[2]}"


def test_there_are_apis() -> None:
    assert APIS


@pytest.mark.parametrize("name", generate.PAGES)
def test_pages_quote_the_programs_output(name: str) -> None:
    """The pages thus have a row for every microversion, route and rule; ``make reference`` writes
    them."""
    path = REFERENCE / name
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == generate.PAGES[name](APIS), f"Run 'make reference': {name} is out of date."


def test_pages_name_the_newest_microversion() -> None:
    versions = [api.versions for api in APIS.values() if api.versions is not None]
    ranges = {(str(each.oldest), str(each.newest)) for each in versions}
    pages = [ROOT / "README.md", *sorted(REFERENCE.glob("*.md"))]
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    told = [(name, each) for name, text in texts.items() for each in SUPPORTED.findall(text)]
    assert {each for name, each in told if name == "README.md"} <= ranges
    stale = [f"{name}: {' to '.join(each)}" for name, each in told if each not in ranges]
    assert stale == [], f"These pages name microversions that are not the newest: {stale}"


def test_every_command_of_openstack_is_in_the_reference() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    commands = [each.replace("_", " ") for each in project["entry-points"]["openstack.compute.v2"]]
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    missing = [each for each in commands if not re.search(rf"`(openstack )?{each}\b", text)]
    assert missing == [], f"No page in docs/reference describes the commands {missing}."


def test_the_picture_of_the_calendar_is_what_the_program_draws() -> None:
    drawn = calendar_picture.PATH.read_text(encoding="utf-8")
    assert drawn == calendar_picture.svg(), "Run `make reference`."


def prefix(api: Api) -> str:
    """The default path of an API."""
    found = getattr(Serving(), f"{api.name}_prefix")
    assert isinstance(found, str)
    return found


def routes() -> Iterator[tuple[Api, Route, Finding]]:
    """Every route, with its name in exception lists."""
    for api in APIS.values():
        for route in api.routes:
            text = f"{route.method} {prefix(api)}{route.path}"
            yield api, route, Finding(f"api/{api.name}", 1, text)


def test_every_route_has_a_policy() -> None:
    """A route without a policy is an exception, with a reason."""
    judge("open-route", [place for _, route, place in routes() if route.rule is None])
    unknown = [
        str(place)
        for api, route, place in routes()
        if route.rule is not None and route.rule.name not in {rule.name for rule in api.rules}
    ]
    assert unknown == []


def test_every_route_has_a_summary() -> None:
    assert [str(place) for _, route, place in routes() if not route.summary.strip()] == []


def given_summaries() -> Iterator[tuple[Finding, str, str]]:
    """Each route's summary, with its handler's docstring."""
    for file in python_files("src/innkeeper/entrypoints/api"):
        if not file.name.endswith("routes.py"):
            continue
        name = file.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        module = importlib.import_module(name)
        for node in ast.walk(file.tree()):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) not in MADE_BY:
                continue
            index = MADE_BY[ast.unparse(node.func)]
            if len(node.args) > index and isinstance(node.args[index], ast.Constant):
                handler: Any = module
                for part in ast.unparse(node.args[index - 2]).split("."):
                    handler = getattr(handler, part)
                summary = ast.literal_eval(node.args[index])
                yield Finding(file.path, node.lineno, summary), summary, summary_of(handler)


def test_route_summaries_are_not_repeated() -> None:
    """First the handler, then the route, then the rule is described; each text adds something
    new."""
    found = list(given_summaries())
    assert found
    twice = [place for place, summary, reported in found if summary == reported]
    twice += [
        place
        for api, route, place in routes()
        if route.rule is not None
        and route.rule.description == route.summary
        and is_first(api, route)
    ]
    twice += [
        Finding(f"api/{room}", 1, rule.name)
        for room, rules, actions in OF_ACTIONS
        for rule in rules
        for action in actions.values()
        if action.rule == rule.name and rule.description == summary_of(action.run)
    ]
    judge("said-twice", twice)


def is_first(api: Api, route: Route) -> bool:
    """Whether a route is the first with its rule; the rule has this route's words by default."""
    return next(other for other in api.routes if other.rule == route.rule) is route


def requests_in(node: Any) -> Iterator[tuple[str, str, int]]:
    """Find the method, the path and the expected status of every request of a story."""
    if isinstance(node, Mapping):
        request, answer = node.get("request"), node.get("answer") or {}
        if isinstance(request, Mapping) and "path" in request:
            path = str(request["path"]).partition("?")[0]
            yield str(request.get("method", "GET")), path, int(answer.get("status", 200))
        for value in node.values():
            yield from requests_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from requests_in(value)


def template(path: str) -> re.Pattern[str]:
    """A route's path as a pattern; a placeholder is one part of a path."""
    fixed = (re.escape(part) for part in PLACEHOLDER.split(path))
    return re.compile("[^/]+".join(fixed))


def told_routes() -> dict[str, set[int]]:
    """Return the statuses of stories' requests by route: the most literal route that matches."""
    known = {
        place.text: (route.method, template(f"{prefix(api)}{route.path}"))
        for api, route, place in routes()
    }
    reported: dict[str, set[int]] = {text: set() for text in known}
    for path in sorted(STORIES.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=LOADER):
            for method, asked, status in requests_in(document):
                fits = [
                    text
                    for text, (verb, pattern) in known.items()
                    if verb == method.upper() and pattern.fullmatch(asked)
                ]
                if fits:
                    reported[min(fits, key=lambda text: len(PLACEHOLDER.findall(text)))].add(status)
    return reported


def test_every_route_has_a_story() -> None:
    """A story in which the route only refuses does not show what the route does."""
    reported = {
        text
        for text, statuses in told_routes().items()
        if min(statuses, default=REFUSALS) < REFUSALS
    }
    judge(
        "untold-route",
        [place for _, _, place in routes() if place.text not in reported],
        remedy="Write a step in tests/scenarios/<room>/*.yaml that asks the route and succeeds.",
    )


def test_every_placement_route_has_a_story_of_a_refused_caller() -> None:
    reported = {text for text, statuses in told_routes().items() if FORBIDDEN in statuses}
    guarded = [place for api, route, place in routes() if api.name == "placement" and route.rule]
    judge(
        "unrefused-route",
        [place for place in guarded if place.text not in reported],
        remedy="Write a step in tests/scenarios/placement/endpoints that is answered with 403.",
    )


def placement_versions() -> Iterator[tuple[Version, Version]]:
    """Each version of Placement that changed something, paired with the version before it."""
    versions = APIS["placement"].versions
    assert versions is not None
    known = [versions.oldest, *(step.version for step in versions.steps)]
    yield from itertools.pairwise(known)


def version_story(version: Version) -> str:
    """The beginning of the name of a version's file. The rest of the name says what changed."""
    return f"v{version.major}_{version.minor}_"


def versions_asked(story: Mapping[str, Any], service: str) -> set[str]:
    """The versions of a service that the steps of a story request."""
    wanted = re.compile(rf"\b{service} (\d+\.\d+)")
    asked = set()
    for step in story["steps"]:
        header = step["request"].get("microversion", story.get("microversion"))
        asked.update(wanted.findall(header or ""))
    return asked


def test_every_version_of_placement_has_a_story() -> None:
    """Each version has one file, whose name begins with the version; it requests both the version
    and the one before."""
    untold = []
    for before, version in placement_versions():
        paths = list(VERSION_STORIES.glob(f"{version_story(version)}*.yaml"))
        texts = [path.read_text(encoding="utf-8") for path in paths]
        found = [story for text in texts for story in yaml.load_all(text, Loader=LOADER)]
        asked = [versions_asked(story, "placement") for story in found]
        missing = sorted({str(before), str(version)}.difference(*asked))
        if missing or len(paths) != 1:
            place = str(VERSION_STORIES.relative_to(ROOT) / version_story(version))
            untold.append(Finding(place, 1, f"has {len(paths)} files, asks {missing}"))
    judge("untold-version", untold)


def test_no_story_is_named_after_a_version_that_is_none() -> None:
    known = tuple(version_story(version) for _, version in placement_versions())
    strange = {
        path.stem for path in VERSION_STORIES.glob("*.yaml") if not path.stem.startswith(known)
    }
    assert strange == {"v1_0_the_beginning"}


def test_paths_meet_as_the_router_would_have_them() -> None:
    """A placeholder matches one part of a path, whatever a story has there."""
    assert template("/p/{uuid}/inventories").fullmatch("/p/$PROVIDER/inventories")
    assert not template("/p/{uuid}").fullmatch("/p/1/inventories")
    reported = {"request": {"method": "put", "path": "/p/1?a=b"}, "answer": {"status": 204}}
    refused = {"request": {"method": "put", "path": "/p/2"}, "answer": {"status": 404}}
    found = list(requests_in({"steps": [reported, refused, {"other": 1}]}))
    assert found == [("put", "/p/1", 204), ("put", "/p/2", 404)]


def test_settings_know_every_prefix() -> None:
    fields = {field.name for field in msgspec.structs.fields(Serving)}
    assert {f"{name}_prefix" for name in APIS} <= fields
