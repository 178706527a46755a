"""The import's parts: what is objected to, what differs, how conflicts and changes are met."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from innkeeper.clients import logins
from innkeeper.domain.amounts import UNIT_MAX, Inventory
from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.entrypoints.cli.placement_import import differences, objections, plan
from innkeeper.entrypoints.cli.placement_import.objections import Others
from innkeeper.entrypoints.cli.placement_import.pictures import Consumer, Picture, Provider
from innkeeper.entrypoints.cli.placement_import.progress import Bars, Lines, shown_on
from innkeeper.entrypoints.cli.placement_import.reading import Reader
from innkeeper.entrypoints.cli.placement_import.writing import Wish, Writer, chunks
from innkeeper.main import main
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


def provider(uuid: str = HOST, **more: Any) -> Provider:
    settled: dict[str, Any] = {
        "name": uuid[-3:],
        "parent": None,
        "generation": 0,
        "inventories": {"VCPU": Inventory(total=4)},
        "traits": frozenset(),
        "aggregates": frozenset(),
        **more,
    }
    return Provider(uuid=uuid, spelling=uuid, **settled)


def consumer(uuid: str = SERVER, amount: int = 1, **more: Any) -> Consumer:
    settled: dict[str, Any] = {
        "project": "p",
        "user": "u",
        "kind": None,
        "generation": 1,
        "holds": {HOST: {"VCPU": amount}},
        **more,
    }
    return Consumer(uuid=uuid, spelling=uuid, **settled)


def picture(*things: Provider | Consumer, **more: Any) -> Picture:
    settled: dict[str, Any] = {
        "classes": frozenset({"VCPU"}),
        "traits": frozenset({"HW_NUMA_ROOT"}),
        **more,
    }
    return Picture(
        providers={each.uuid: each for each in things if isinstance(each, Provider)},
        consumers={each.uuid: each for each in things if isinstance(each, Consumer)},
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
        (
            picture(),
            picture(provider()),
            Others.REFUSE,
            "has providers that the source has not",
        ),
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
        (picture(provider(parent=CHILD)), picture(), Others.REFUSE, "which is not there"),
        (picture(consumer()), picture(), Others.REFUSE, "no inventory of it"),
        (picture(provider("one")), picture(), Others.REFUSE, "'one' has no uuid"),
        (
            picture(provider(), consumer("one")),
            picture(),
            Others.REFUSE,
            "consumer 'one' has no uuid",
        ),
        (
            picture(provider(name="a")),
            picture(provider(CHILD, name="a")),
            Others.KEEP,
            "has the name 'a'",
        ),
    ],
)
def test_what_cannot_go_well_is_objected_to(
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


def test_a_name_of_several_lines_is_told_in_one() -> None:
    (line,) = differences.find(picture(provider(name="a\nb")), picture())
    assert line == f'provider {HOST} "a\\nb": only in the source'


# -- the plan ------------------------------------------------------------------------------


def test_an_inventory_opens_only_as_wide_as_what_is_held() -> None:
    small = provider(inventories={"VCPU": Inventory(total=4, reserved=1)})
    made = plan.make(picture(small, consumer(amount=7)), picture(), Others.REFUSE)
    (opened,), (closed,) = made.furnished, made.closed
    assert opened.inventories == {"VCPU": Inventory(total=7)}
    assert closed.inventories == small.inventories


def test_more_than_fits_an_integer_is_held_by_a_ratio() -> None:
    amounts = [consumer(f"c0000000-0000-4000-8000-00000000000{n}", UNIT_MAX) for n in range(3)]
    made = plan.make(picture(provider(), *amounts), picture(), Others.REFUSE)
    opened = made.furnished[0].inventories
    assert opened is not None
    assert opened["VCPU"] == Inventory(total=UNIT_MAX, allocation_ratio=3.0)


def test_what_fits_is_written_once() -> None:
    made = plan.make(picture(provider(), consumer()), picture(), Others.REFUSE)
    assert [each.inventories for each in made.furnished] == [provider().inventories]
    assert made.closed == []


def test_requests_are_of_bounded_size() -> None:
    many = [Wish(consumer(holds={f"{n}": {"VCPU": 1} for n in range(200)})) for _ in range(7)]
    assert [len(chunk) for chunk in chunks(many, 100)] == [2, 2, 2, 1]
    assert [len(chunk) for chunk in chunks([Wish(consumer())] * 7, 3)] == [3, 3, 1]
    huge = Wish(consumer(holds={f"{n}": {"VCPU": 1} for n in range(2000)}))
    assert [len(chunk) for chunk in chunks([huge, huge], 100)] == [1, 1]


# -- reading what changes, writing what others write ---------------------------------------


class Growing(Ledger):
    """While its consumers are read, a server is booted on a host that is new as well."""

    def get(self, path: str, **more: Any) -> dict[str, Any]:
        if path.startswith("/allocations/") and CHILD not in self.rows:
            self.rows[CHILD] = Row("new", None, inventories={"VCPU": dict(FOUR)})
            self.holders[SERVER].holds[CHILD] = {"VCPU": 1}
        return super().get(path, **more)


def test_what_appears_while_reading_is_read_as_well() -> None:
    host = Row("host", None, inventories={"VCPU": dict(FOUR)})
    holder = Holder("p", "u", None, {HOST: {"VCPU": 1}})
    source: Any = Growing("source", {HOST: host}, {SERVER: holder}, {"VCPU"})
    found = Reader(source, 2, Silent()).read(with_usages=False)
    assert found.providers.keys() == {HOST, CHILD}
    assert list(objections.find(found, picture(), Others.REFUSE)) == []


class Contested(Ledger):
    """Somebody else writes to a provider just before we do, so many times."""

    others_writes = 3

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if path.endswith("/traits") and self.others_writes:
            self.others_writes -= 1
            self.rows[HOST].generation += 1
        return super().send(method, path, body, **more)


class Deaf(Ledger):
    """What is written arrives, but the first answer about it is lost, and it is sent again."""

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if path not in self.__dict__.setdefault("lost", set()):
            self.__dict__["lost"].add(path)
            super().send(method, path, body, **more)
        return super().send(method, path, body, **more)


@pytest.mark.parametrize("kind", [Contested, Deaf])
def test_conflicts_are_met_by_looking_again(kind: type[Ledger]) -> None:
    source = picture(
        provider(traits=frozenset({"HW_NUMA_ROOT"}), aggregates=frozenset({CHILD})),
        consumer(amount=7, kind="INSTANCE"),
        classes=frozenset({"VCPU", "CUSTOM_A"}),
    )
    target: Any = kind("target", classes={"VCPU"}, traits={"HW_NUMA_ROOT"})
    waits: list[float] = []
    empty = Reader(target, 1, Silent()).read(with_usages=False)
    made = plan.make(source, empty, Others.REFUSE)
    Writer(target, empty, 2, Silent(), waits.append).carry_out(made)
    there = Reader(target, 1, Silent()).read(with_usages=False)
    assert list(differences.find(source, there)) == []
    assert waits


def test_a_conflict_that_does_not_end_is_told() -> None:
    source = picture(provider(traits=frozenset({"HW_NUMA_ROOT"})))
    target: Any = Contested("target", classes={"VCPU"}, traits={"HW_NUMA_ROOT"})
    target.others_writes = 1000
    empty = Reader(target, 1, Silent()).read(with_usages=False)
    made = plan.make(source, empty, Others.REFUSE)
    waits: list[float] = []
    with pytest.raises(ConcurrentUpdate):
        Writer(target, empty, 1, Silent(), waits.append).carry_out(made)
    assert len(waits) == 7


# -- what is shown, and what is asked for --------------------------------------------------


def test_a_file_gets_lines() -> None:
    stream = io.StringIO()
    steps = shown_on(stream)
    assert isinstance(steps, Lines)
    with steps.step("source: reading", 1000) as advance:
        for _ in range(1000):
            advance(1)
    assert stream.getvalue().splitlines() == [
        f"source: reading: {done} of 1000" for done in range(0, 1001, 100)
    ]
    with steps.step("few", 3) as advance:
        advance(2)
        advance(1)
    assert stream.getvalue().splitlines()[-2:] == ["few: 0 of 3", "few: 3 of 3"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar() -> None:
    stream = Terminal()
    steps = shown_on(stream)
    assert isinstance(steps, Bars)
    with steps.step("source: reading", 4) as advance:
        advance(4)
    assert "source: reading" in stream.getvalue()
    assert "4/4" in stream.getvalue()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--from-url", "placement"),
        ("--from-url", "http://"),
        ("--to-url", "http://a b"),
        ("--to-url", "http://host/?a=b"),
        ("--to-url", "http://me:secret@host"),
        ("--jobs", "0"),
        ("--jobs", "65"),
        ("--jobs", "many"),
        ("--timeout", "nan"),
        ("--timeout", "0"),
        ("--timeout", "1e9"),
        ("--others", "shoot"),
    ],
)
def test_wrong_options_are_refused(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["placement-import", option, value])
    assert ended.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err


def test_two_acts_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["placement-import", "--dry-run", "--verify-only"])
    assert "not allowed with" in capsys.readouterr().err


def test_a_cloud_may_say_where_its_placement_is(tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(
        "clouds:\n"
        "  trusting: {auth_type: admin_token, auth: {endpoint: 'http://a:1', token: admin}}\n"
        "  elsewhere:\n"
        "    auth_type: admin_token\n"
        "    auth: {endpoint: 'http://a:1', token: admin}\n"
        "    placement_endpoint_override: http://b:2/placement\n"
    )
    trusting = logins.from_clouds_file("trusting", [str(path)])
    assert (trusting.token(), trusting.service_url("placement")) == ("admin", "http://a:1")
    elsewhere = logins.from_clouds_file("elsewhere", [str(path)])
    assert elsewhere.service_url("placement") == "http://b:2/placement"
