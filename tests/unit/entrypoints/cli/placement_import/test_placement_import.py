"""The import's parts: objections, differences, conflicts, and changes during the import."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from innkeeper.domain.amounts import UNIT_MAX, Inventory
from innkeeper.domain.errors import ConcurrentUpdate, Invalid
from innkeeper.entrypoints.cli.placement_import import differences, objections, plan
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.pictures import (
    ConsumerPicture,
    Picture,
    ProviderPicture,
)
from innkeeper.entrypoints.cli.placement_import.reading import Reader
from innkeeper.entrypoints.cli.placement_import.writing import ConsumerWrite, PlanWriter, chunks
from tests.support.placement_ledger import Holder, Ledger, Row

HOST = "a0000000-0000-4000-8000-000000000001"
CHILD = "a0000000-0000-4000-8000-000000000002"
SERVER = "c0000000-0000-4000-8000-000000000001"
FOUR = {
    "total": 4,
    "reserved": 0,
    "min_unit": 1,
    "max_unit": 4,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


def provider(uuid: str = HOST, **more: Any) -> ProviderPicture:
    settled: dict[str, Any] = {
        "name": uuid[-3:],
        "parent": None,
        "generation": 0,
        "inventories": {"VCPU": Inventory(total=4)},
        "traits": frozenset(),
        "aggregates": frozenset(),
        **more,
    }
    return ProviderPicture(uuid=uuid, spelling=uuid, **settled)


def consumer(uuid: str = SERVER, amount: int = 1, **more: Any) -> ConsumerPicture:
    settled: dict[str, Any] = {
        "project": "p",
        "user": "u",
        "kind": None,
        "generation": 1,
        "holds": {HOST: {"VCPU": amount}},
        **more,
    }
    return ConsumerPicture(uuid=uuid, spelling=uuid, **settled)


def picture(*things: ProviderPicture | ConsumerPicture, **more: Any) -> Picture:
    settled: dict[str, Any] = {
        "classes": frozenset({"VCPU"}),
        "traits": frozenset({"HW_NUMA_ROOT"}),
        **more,
    }
    return Picture(
        providers={each.uuid: each for each in things if isinstance(each, ProviderPicture)},
        consumers={each.uuid: each for each in things if isinstance(each, ConsumerPicture)},
        **settled,
    )


class Silent:
    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Any]:
        yield lambda count: None


# -- objections and differences ------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "others", "words"),
    [
        (picture(), picture(provider()), Others.REFUSE, "has providers that the source lacks"),
        (picture(provider()), picture(provider(), consumer()), Others.REFUSE, "has consumers"),
        (
            picture(provider(traits=frozenset({"HW_NEW"}))),
            picture(),
            Others.REFUSE,
            "does not know the trait HW_NEW",
        ),
        (
            picture(provider(inventories={"NEW": Inventory(1)})),
            picture(),
            Others.REFUSE,
            "does not know the resource class NEW",
        ),
        (picture(provider(parent=CHILD)), picture(), Others.REFUSE, "does not exist"),
        (picture(consumer()), picture(), Others.REFUSE, "no inventory of it"),
        (picture(provider(parent=HOST)), picture(), Others.REFUSE, "is its own ancestor"),
        (
            picture(provider(name="a")),
            picture(provider(CHILD, name="a")),
            Others.KEEP,
            "has the name 'a'",
        ),
    ],
)
def test_inconsistent_imports_are_rejected(
    source: Picture, target: Picture, others: Others, words: str
) -> None:
    (line,) = objections.find(source, target, others)
    assert words in line


def test_custom_names_are_no_objection_and_many_users_are_not_all_named() -> None:
    uuids = [f"a0000000-0000-4000-8000-00000000000{number}" for number in range(5)]
    mine = {"traits": frozenset({"CUSTOM_A", "HW_NEW"})}
    (line,) = objections.find(
        picture(*(provider(uuid, **mine) for uuid in uuids)), picture(), Others.REFUSE
    )
    assert f"5 ({', '.join(uuids[:3])}, ...)" in line


def test_ratios_are_equal_as_far_as_databases_keep_them() -> None:
    def pictured(ratio: float) -> Picture:
        inventory = Inventory(total=4, allocation_ratio=ratio)
        return picture(provider(inventories={"VCPU": inventory}))

    assert list(differences.find(pictured(1.1), pictured(1.10000002384))) == []
    assert list(differences.find(pictured(1.1), pictured(1.2))) == [
        f"provider {HOST}: inventory of VCPU: allocation_ratio: 1.1 in the source, 1.2 in the "
        "target"
    ]


def test_usages_and_totals_are_compared_as_the_services_tell_them() -> None:
    source = picture(provider(usages={"VCPU": 2}), totals={"p": {"VCPU": 2}})
    target = picture(provider(usages={"VCPU": 3, "DISK_GB": 0}), totals={"p": {"VCPU": 3}})
    assert list(differences.find(source, target)) == [
        f"provider {HOST}: usage of VCPU: 2 in the source, 3 in the target",
        'project "p": usage of VCPU: 2 in the source, 3 in the target',
    ]
    other = replace(target, consumers={SERVER: consumer()})
    assert list(differences.find(source, other, keeps_others=True)) == []


def test_a_multiline_name_is_shown_in_one_line() -> None:
    (line,) = differences.find(picture(provider(name="a\nb")), picture())
    assert line == f'provider {HOST} "a\\nb": only in the source'


@pytest.mark.parametrize(("char", "shown"), [("\x9b", "\\u009b"), ("\u202e", "\\u202e")])
def test_names_are_shown_without_terminal_escapes(char: str, shown: str) -> None:
    (line,) = differences.find(picture(provider(name=f"a{char}31m")), picture())
    assert line == f'provider {HOST} "a{shown}31m": only in the source'


# -- the plan ------------------------------------------------------------------------------


def test_an_inventory_is_opened_only_for_what_is_held() -> None:
    small = provider(inventories={"VCPU": Inventory(total=4, reserved=1)})
    steps = plan.make(picture(small, consumer(amount=7)), picture(), Others.REFUSE)
    (opened,), (closed,) = steps.updates, steps.final_updates
    assert opened.inventories == {"VCPU": Inventory(total=7)}
    assert closed.inventories == small.inventories


def test_amounts_beyond_the_integer_limit_use_a_ratio() -> None:
    amounts = [consumer(f"c0000000-0000-4000-8000-00000000000{n}", UNIT_MAX) for n in range(3)]
    steps = plan.make(picture(provider(), *amounts), picture(), Others.REFUSE)
    opened = steps.updates[0].inventories
    assert opened is not None
    assert opened["VCPU"] == Inventory(total=UNIT_MAX, allocation_ratio=3.0)


def test_an_inventory_that_fits_is_written_once() -> None:
    steps = plan.make(picture(provider(), consumer()), picture(), Others.REFUSE)
    assert [each.inventories for each in steps.updates] == [provider().inventories]
    assert steps.final_updates == []


def test_requests_are_of_bounded_size() -> None:
    many = [
        ConsumerWrite(consumer(holds={f"{n}": {"VCPU": 1} for n in range(200)})) for _ in range(7)
    ]
    assert [len(chunk) for chunk in chunks(many, 100)] == [2, 2, 2, 1]
    assert [len(chunk) for chunk in chunks([ConsumerWrite(consumer())] * 7, 3)] == [3, 3, 1]
    huge = ConsumerWrite(consumer(holds={f"{n}": {"VCPU": 1} for n in range(2000)}))
    assert [len(chunk) for chunk in chunks([huge, huge], 100)] == [1, 1]


# -- reading what changes, writing what others write ---------------------------------------


class Growing(Ledger):
    """While the consumers are read, a server is booted on a host that is also new."""

    def get(self, path: str, **more: Any) -> dict[str, Any]:
        if path.startswith("/allocations/") and CHILD not in self.rows:
            self.rows[CHILD] = Row("new", None, inventories={"VCPU": dict(FOUR)})
            self.holders[SERVER].holds[CHILD] = {"VCPU": 1}
        return super().get(path, **more)


def test_changes_during_the_read_are_read_too() -> None:
    host = Row("host", None, inventories={"VCPU": dict(FOUR)})
    holder = Holder("p", "u", None, {HOST: {"VCPU": 1}})
    source: Any = Growing("source", {HOST: host}, {SERVER: holder}, {"VCPU"})
    found = Reader(source, 2, Silent()).read(with_usages=False)
    assert found.providers.keys() == {HOST, CHILD}
    assert list(objections.find(found, picture(), Others.REFUSE)) == []


class Contested(Ledger):
    """Another client writes to a provider just before each of our writes."""

    others_writes = 3

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if path.endswith("/traits") and self.others_writes:
            self.others_writes -= 1
            self.rows[HOST].generation += 1
        return super().send(method, path, body, **more)


class Deaf(Ledger):
    """Writes succeed, but the first response is lost, so the write is repeated."""

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if path not in self.__dict__.setdefault("lost", set()):
            self.__dict__["lost"].add(path)
            super().send(method, path, body, **more)
        return super().send(method, path, body, **more)


@pytest.mark.parametrize("kind", [Contested, Deaf])
def test_conflicts_are_retried_after_a_refresh(kind: type[Ledger]) -> None:
    source = picture(
        provider(traits=frozenset({"HW_NUMA_ROOT"}), aggregates=frozenset({CHILD})),
        consumer(amount=7, kind="INSTANCE"),
        classes=frozenset({"VCPU", "CUSTOM_A"}),
    )
    target: Any = kind("target", classes={"VCPU"}, traits={"HW_NUMA_ROOT"})
    waits: list[float] = []
    empty = Reader(target, 1, Silent()).read(with_usages=False)
    steps = plan.make(source, empty, Others.REFUSE)
    PlanWriter(target, empty, 2, Silent(), waits.append).carry_out(steps)
    there = Reader(target, 1, Silent()).read(with_usages=False)
    assert list(differences.find(source, there)) == []
    assert waits


def test_a_persistent_conflict_is_raised() -> None:
    source = picture(provider(traits=frozenset({"HW_NUMA_ROOT"})))
    target: Any = Contested("target", classes={"VCPU"}, traits={"HW_NUMA_ROOT"})
    target.others_writes = 1000
    empty = Reader(target, 1, Silent()).read(with_usages=False)
    steps = plan.make(source, empty, Others.REFUSE)
    waits: list[float] = []
    with pytest.raises(ConcurrentUpdate):
        PlanWriter(target, empty, 1, Silent(), waits.append).carry_out(steps)
    assert len(waits) == 7


class Odd(Ledger):
    """Some of its answers are JSON, but not what a Placement API gives."""

    odd_path = ""
    odd_answer: Any = None

    def ask(self, path: str) -> dict[str, Any]:
        found = super().ask(path)
        return dict(self.odd_answer) if path == self.odd_path else found

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        found = super().send(method, path, body, **more)
        return dict(self.odd_answer) if path == self.odd_path else found


def listed(**more: Any) -> dict[str, Any]:
    row = {"uuid": HOST, "name": "host", "parent_provider_uuid": None, **more}
    return {"resource_providers": [row]}


def has(**more: Any) -> dict[str, Any]:
    return {"resource_provider_generation": 0, "inventories": {"VCPU": {**FOUR, **more}}}


def holds(uuid: str, amount: int) -> dict[str, Any]:
    return {
        "allocations": {uuid: {"resources": {"VCPU": amount}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 1,
    }


def odd(path: str, answer: Any) -> Any:
    host = Row("host", None, inventories={"VCPU": dict(FOUR)})
    holder = Holder("p", "u", None, {HOST: {"VCPU": 1}})
    target = Odd("source", {HOST: host}, {SERVER: holder}, {"VCPU"})
    target.odd_path, target.odd_answer = path, answer
    return target


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("/resource_classes", {}, "`resource_classes`"),
        ("/resource_classes", {"resource_classes": [{}]}, "`name`"),
        ("/traits", {"traits": None}, "`$.traits`"),
        ("/resource_providers", {"resource_providers": [{"uuid": HOST}]}, "`name`"),
        (f"/resource_providers/{HOST}/inventories", {"inventories": {}}, "generation"),
        (
            f"/resource_providers/{HOST}/inventories",
            {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}},
            "`reserved`",
        ),
        (f"/resource_providers/{HOST}/traits", {"traits": [1]}, "`$.traits[0]`"),
        (f"/resource_providers/{HOST}/aggregates", {}, "`aggregates`"),
        (f"/resource_providers/{HOST}/usages", {"usages": {"VCPU": "1"}}, "`$.usages[...]`"),
        (f"/resource_providers/{HOST}/allocations", {"allocations": []}, "`$.allocations`"),
        (f"/allocations/{SERVER}", {"allocations": {HOST: {}}}, "`resources`"),
        (f"/allocations/{SERVER}", {}, "`allocations`"),
        ("/resource_classes", {"resource_classes": [{"name": "CUSTOM_../x"}]}, "[A-Z0-9_]"),
        ("/traits", {"traits": ["CUSTOM_A\x1b[31m"]}, "[A-Z0-9_]"),
        ("/traits", {"traits": ["CUSTOM_A\n"]}, "[A-Z0-9_]"),
        ("/resource_providers", listed(uuid="../../x?y#z"), "'../../x?y#z' is not a uuid"),
        ("/resource_providers", listed(uuid="\x1b[31m"), "'\\x1b[31m' is not a uuid"),
        ("/resource_providers", listed(parent_provider_uuid="x"), "'x' is not a uuid"),
        ("/resource_providers", listed(name="n" * 201), "length <= 200"),
        (f"/resource_providers/{HOST}/inventories", has(total=-1), "`int` >= 0"),
        (f"/resource_providers/{HOST}/inventories", has(total=10**400), "`int` <="),
        (f"/resource_providers/{HOST}/inventories", has(step_size=0), "`int` >= 1"),
        (f"/resource_providers/{HOST}/aggregates", {"aggregates": ["x"]}, "'x' is not a uuid"),
        (f"/resource_providers/{HOST}/allocations", {"allocations": {"x": {}}}, "'x' is no"),
        (f"/allocations/{SERVER}", holds(HOST, 0), "`int` >= 1"),
        (f"/allocations/{SERVER}", holds("x", 1), "'x' is not a uuid"),
        (f"/allocations/{SERVER}", {**holds(HOST, 1), "project_id": None}, "project_id"),
        (f"/allocations/{SERVER}", {**holds(HOST, 1), "consumer_type": "\n"}, "consumer_type"),
    ],
)
def test_a_malformed_response_is_reported_in_one_line(path: str, answer: Any, words: str) -> None:
    with pytest.raises(Invalid) as raised:
        Reader(odd(path, answer), 2, Silent()).read(with_usages=True)
    message = raised.value.message
    assert message.startswith("source: the response is not from a Placement API: " + path)
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize("path", ["/resource_providers", f"/resource_providers/{HOST}/traits"])
def test_a_malformed_response_to_a_write_is_reported(path: str) -> None:
    source = picture(provider(traits=frozenset({"HW_NUMA_ROOT"})))
    target: Any = Odd("target", classes={"VCPU"}, traits={"HW_NUMA_ROOT"})
    empty = Reader(target, 1, Silent()).read(with_usages=False)
    target.odd_path, target.odd_answer = path, {"uuid": HOST}
    steps = plan.make(source, empty, Others.REFUSE)
    with pytest.raises(Invalid, match="target: the response is not from a Placement API"):
        PlanWriter(target, empty, 1, Silent(), print).carry_out(steps)


class Attentive(Ledger):
    """Records its requests."""

    paths: list[str]

    def ask(self, path: str) -> dict[str, Any]:
        self.__dict__.setdefault("paths", []).append(path)
        return super().ask(path)

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        self.__dict__.setdefault("paths", []).append(path)
        return super().send(method, path, body, **more)


def test_an_unusual_spelling_of_a_uuid_is_quoted_in_paths() -> None:
    spelling = "{urn:uuid:" + HOST.upper() + "}"
    target: Any = Attentive(
        "target", {spelling: Row("host", None)}, classes={"VCPU"}, traits={"HW_NUMA_ROOT"}
    )
    there = Reader(target, 1, Silent()).read(with_usages=False)
    assert there.providers[HOST].spelling == spelling
    steps = plan.make(picture(provider()), there, Others.REFUSE)
    PlanWriter(target, there, 1, Silent(), print).carry_out(steps)
    assert target.rows[spelling].inventories == {"VCPU": {**FOUR, "max_unit": UNIT_MAX}}
    assert all(part not in path for path in target.paths for part in "{}:")
