"""Access: versions, media types, methods, tokens and roles, as with the original."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.comparing import VERSIONS, Ask, Pair, at, both, uuid

pytestmark = pytest.mark.slow
HERE, NOWHERE = uuid(1), uuid(9)
PROVIDERS = "/resource_providers"
PROVIDER, STRANGER = f"{PROVIDERS}/{HERE}", f"{PROVIDERS}/{NOWHERE}"
PARTS = ("inventories", "inventories/DISK_GB", "usages", "aggregates", "traits", "allocations")
OF_PROVIDER = tuple(f"{PROVIDER}/{part}" for part in PARTS)
NAMES = ("/resource_classes", "/resource_classes/VCPU", "/traits", "/traits/CUSTOM_A")
OTHERS = ("/allocations", f"/allocations/{HERE}", "/usages")
PATHS = ("/", PROVIDERS, PROVIDER, STRANGER, *OF_PROVIDER, *NAMES, *OTHERS)
NO_PATHS = (
    "/nope",
    "/v1",
    f"{PROVIDERS}/",
    f"{PROVIDER}/",
    f"{PROVIDER}/nope",
    "/traits/",
    f"{PROVIDERS}/%2F",
)
ASKED_OFTEN = ("/", PROVIDERS, "/nope", STRANGER)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with both(tmp_path_factory.mktemp("ways-in")) as made:
        body = {"resource_class": "VCPU", "total": 8}
        asks = [
            Ask("POST", PROVIDERS, {"name": "here", "uuid": HERE}),
            Ask("POST", f"{PROVIDER}/inventories", body),
        ]
        made.agree(asks)
        yield made


def test_every_method_of_every_path(pair: Pair) -> None:
    asks = [
        Ask(method, path)
        for path in (*PATHS, *NO_PATHS)
        for method in ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND")
        if method != "DELETE" or path not in (PROVIDER, f"{PROVIDER}/inventories")
    ]
    pair.agree(asks)
    pair.agree(at(("1.0",), *(ask for ask in asks if not ask.path.endswith("/aggregates"))))
    pair.agree(Ask(ask.method, ask.path, token=None) for ask in asks)
    heads = [Ask("HEAD", path, differs="head") for path in (*PATHS, *NO_PATHS)]
    pair.agree(heads)


def test_fields_shown_at_every_version(pair: Pair) -> None:
    queries = ("", "?name=here", "?required=HW_CPU_X86_AVX", "?member_of=in:x")
    asks = [Ask("GET", PROVIDERS + query) for query in queries]
    asks += [Ask("GET", path) for path in (PROVIDER, STRANGER, "/", "/usages?project_id=p")]
    pair.agree(at(VERSIONS, *asks))


def test_routes_at_every_version(pair: Pair) -> None:
    versions = ("1.1", "1.2", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.12", "1.13", "1.29")
    asks = [Ask("GET", path) for path in (*PATHS, "/reshaper", "/allocation_candidates")]
    asks += [Ask("DELETE", f"{STRANGER}/inventories"), Ask("POST", "/allocations", {})]
    asks += [Ask("PUT", "/resource_classes/VCPU"), Ask("DELETE", "/traits/CUSTOM_A")]
    pair.agree(at(versions, *asks))


def test_versions(pair: Pair) -> None:
    alike = (
        "placement 1.0",
        "placement 1.39",
        "placement 1.40",
        "placement 2.0",
        "placement 0.9",
        "placement 1.-1",
        "placement 1.99999999999999999999",
        "placement latest",
        "placement LATEST",
        "placement pony",
        "placement 1",
        "placement 1.2.3",
        "placement 1.x",
        "placement 1.5;x",
        "placement 01.2",
        "placement 1.02",
        "placement\t1.2",
        "placement  1.5",
        "placement",
        "compute 2.1",
        "compute 2.1, placement 1.5",
        "placement 1.5, compute 2.1",
        "compute pony, placement 1.5",
        "placement 1.5,placement 1.6",
        "Placement 1.5",
        "resource-placement 1.5",
        "placement:1.5",
        "1.5",
        "latest",
        "",
    )
    asks = [
        Ask("GET", path, None, None, headers={"openstack-api-version": header})
        for header in alike
        for path in ASKED_OFTEN
    ]
    pair.agree(asks)


def test_accepted_bodies_agree(pair: Pair) -> None:
    headers = (
        "application/json",
        "application/json, text/plain",
        "application/*",
        "*/*",
        "",
        "text/plain",
        "text/html",
        "text/*",
        "image/png",
        "garbage",
        "text/html, application/json;q=0.1",
        "text/html;q=0.1, application/json",
        "text/plain;q=0.5, text/html",
        "application/json;q=0",
        "*/*;q=0",
        "application/xml, */*;q=0.1",
    )
    asks = [
        *(Ask("GET", path) for path in (*ASKED_OFTEN, *OF_PROVIDER, *NAMES)),
        Ask("GET", f"{PROVIDERS}?foo=1"),
        Ask("GET", PROVIDER),
        Ask("GET", "/usages?project_id=p"),
        Ask("POST", PROVIDERS, {}),
        Ask("PUT", PROVIDERS),
        Ask("PUT", f"{PROVIDER}/traits", b"[]", headers={"content-type": "text/plain"}),
        Ask("DELETE", STRANGER, version="1.22"),
        Ask("GET", STRANGER, version="1.22"),
        Ask("GET", PROVIDERS, version="1.99"),
        Ask("GET", PROVIDERS, version="x"),
        Ask("GET", PROVIDERS, headers={"x-roles": "nobody"}),
    ]
    every = [
        Ask(ask.method, ask.path, ask.body, ask.version, {"accept": accept, **ask.headers})
        for accept in headers
        for ask in asks
    ]
    pair.agree(every)


BODIES = (
    ("PUT", PROVIDER),
    ("PUT", STRANGER),
    ("POST", PROVIDERS),
    *(("PUT", f"{path}/{part}") for path in (PROVIDER, STRANGER) for part in PARTS[:2]),
    *(("POST", f"{path}/inventories") for path in (PROVIDER, STRANGER)),
    *(("PUT", f"{path}/aggregates") for path in (PROVIDER, STRANGER)),
    *(("PUT", f"{path}/traits") for path in (PROVIDER, STRANGER)),
    ("POST", "/resource_classes"),
    ("POST", "/allocations"),
    ("PUT", f"/allocations/{HERE}"),
    ("PUT", "/allocations/x"),
)
NOT_READ = (("GET", PROVIDERS), ("GET", "/"), ("PUT", PROVIDERS), ("DELETE", STRANGER))


def test_bodies_and_their_types(pair: Pair) -> None:
    json = {"content-type": "application/json"}
    sent: tuple[tuple[bytes, dict[str, str]], ...] = (
        (b"", {}),
        (b"", {"content-type": "text/plain"}),
        (b"{}", {}),
        (b"{}", {"content-type": ""}),
        (b"{}", {"content-type": "text/plain"}),
        (b"{}", {"content-type": "application/vnd.api+json"}),
        (b"{}", {"content-type": "application/json; charset=utf-8"}),
        (b"{}", json),
        (b"{", json),
        (b'{"name": "x"', json),
        (b"[1,]", json),
        (b"\xff", json),
        (b"[]", json),
        (b"null", json),
        (b'"x"', json),
        (b"7", json),
        (b'{"x":1}', json),
        (b'{"name":"a","name":3}', json),
    )
    asks = [
        Ask(method, path, body, headers=headers)
        for method, path in (*BODIES, *NOT_READ)
        for body, headers in sent
    ]
    pair.agree(asks)


@pytest.mark.parametrize(
    ("differs", "ask"),
    [
        ("capitals", Ask("POST", PROVIDERS, b"{}", headers={"content-type": "Application/JSON"})),
        (
            "not a number",
            Ask("POST", PROVIDERS, b'{"name": NaN}', headers={"content-type": "application/json"}),
        ),
        ("nothing there yet", Ask("PUT", f"{PROVIDER}/aggregates", version="1.0")),
        ("empty token", Ask("GET", PROVIDERS, token="")),
        ("utf-8", Ask("GET", f"{PROVIDERS}/L%C3%B6we")),
        ("nul", Ask("PUT", "/traits/%00")),
        ("semicolon", Ask("GET", f"{PROVIDERS}?name=a;uuid=b")),
    ],
    ids=str,
)
def test_what_differs(pair: Pair, differs: str, ask: Ask) -> None:
    marked = Ask(ask.method, ask.path, ask.body, ask.version, ask.headers, ask.token, differs)
    pair.agree([marked])


def test_tokens_and_roles(pair: Pair) -> None:
    tokens = ("admin", "admin:p", "nobody", "x:y", ":p")
    asked = (*ASKED_OFTEN, "/usages", "/usages?project_id=p", "/usages?project_id=x")
    asks = [
        Ask("GET", path, token=token, version="1.39" if token != ":p" else "1.0")
        for token in tokens[:-1]
        for path in asked
    ]
    sets = ("admin", "service", "reader", "member", "admin,member", "", "ADMIN", "Reader")
    json, text = {"content-type": "application/json"}, {"content-type": "text/plain"}
    for roles in sets:
        header = {"x-roles": roles}
        asks += [Ask("GET", path, headers=header, token="u:p") for path in asked]
        asks += [Ask("PATCH", path, headers=header, token="u:p") for path in ASKED_OFTEN]
        asks += [
            Ask("POST", PROVIDERS, b"{", headers={**header, **json}),
            Ask("POST", PROVIDERS, b"{", headers={**header, **text}),
            Ask("GET", f"{PROVIDERS}?foo=1", headers=header),
            Ask("GET", PROVIDERS, headers={**header, "openstack-system-scope": "all"}),
            Ask("POST", "/reshaper", {}, headers=header),
            Ask("DELETE", STRANGER, headers=header),
        ]
    pair.agree(asks)
