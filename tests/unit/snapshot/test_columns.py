"""The host table's rows and columns: added, swapped, renamed, grown, cleared."""

from __future__ import annotations

import numpy as np
import pytest

from innkeeper.domain.ids import AgentId, HostIndex, ProviderId, ProviderUuid
from innkeeper.domain.leases import CalendarHost
from innkeeper.snapshot.amounts import ROWS_MIN
from innkeeper.snapshot.audit import differences
from innkeeper.snapshot.columns import HostTable
from innkeeper.snapshot.vocabulary import NO_CODE
from tests.support.tables import Sketch, fill, host, row_for, table_of

THREE = (
    host("a", vcpus=1, traits=("T1",), capabilities={"n": 1}, generation=11),
    host("b", vcpus=2, zone="south", capabilities={"n": 2}, generation=12),
    host("c", vcpus=3, agent="other", units={"VCPU": (2, 8, 2)}, generation=13),
)


def row_of(table: HostTable, name: str) -> dict[str, object]:
    """Everything in the row of a host, by name."""
    index = table.index_by_name[name]
    zones = {code: zone for zone, code in table.zones.items()}
    return {
        "provider": int(table.provider_ids[index]),
        "name": table.names[index],
        "generation": table.generation(index),
        "open": bool(table.is_open[index]),
        "zone": zones[int(table.zone_codes[index])],
        "agent": table.agent_of(index),
        "free": {key: float(column[index]) for key, column in table.free.items()},
        "max_unit": {key: float(column[index]) for key, column in table.max_units.items()},
        "traits": {key for key, column in table.traits.items() if column[index]},
        "n": float(table.capability("n").numbers[index]),
    }


def test_a_host_gets_the_next_row_and_keeps_it() -> None:
    table = HostTable()
    assert row_for(table, 7, "a") == 0
    assert row_for(table, 9, "b") == 1
    assert row_for(table, 7, "a") == 0
    assert list(table.provider_ids) == [7, 9]
    assert table.host_count == 2


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_the_last_row_moves_into_the_place_of_one_that_goes(gone: int) -> None:
    table = table_of(*THREE)
    rows = {each.name: repr(row_of(table, each.name)) for each in THREE}
    name = table.names[table.index_of[ProviderId(gone)]]
    table.remove_row(ProviderId(gone))
    assert table.host_count == 2
    assert {each: repr(row_of(table, each)) for each in table.names} == {
        each: text for each, text in rows.items() if each != name
    }
    assert ProviderId(gone) not in table.index_of
    assert name not in table.index_by_name
    assert differences(table, table) == []


def test_all_hosts_can_go_in_any_order_and_come_back() -> None:
    table = table_of(*THREE)
    for provider_id in (2, 3, 1):
        table.remove_row(ProviderId(provider_id))
    assert (table.host_count, table.names, table.index_of) == (0, [], {})
    index = row_for(table, 4, "d")
    assert index == 0
    assert table.free["VCPU"][0] == 0, "nothing of the removed host is left"
    assert not table.traits["T1"][0]
    assert table.capability("n").codes[0] == NO_CODE


def test_removing_a_stranger_changes_nothing() -> None:
    table = table_of(*THREE)
    table.remove_row(ProviderId(99))
    assert differences(table, table_of(*THREE)) == []


def test_a_host_can_be_renamed() -> None:
    table = table_of(*THREE)
    assert row_for(table, 2, "B") == 1
    assert "b" not in table.index_by_name
    assert row_of(table, "B")["generation"] == 12


def test_two_hosts_can_change_names_at_once() -> None:
    table = table_of(*THREE)
    table.ensure_rows([(ProviderId(1), "b"), (ProviderId(2), "a")])
    assert table.index_by_name == {"b": 0, "a": 1, "c": 2}
    assert table.names == ["b", "a", "c"]


def test_two_hosts_of_a_pcloud_can_change_names_at_once() -> None:
    table = table_of(*THREE)
    code = table.dedications.code("a pcloud")
    for names in (("one", "two"), ("two", "one")):
        for index, name in enumerate(names):
            table.dedicate(HostIndex(index), code, name, is_open=True)
        assert [table.rows_called([code], name).tolist() for name in names] == [[0], [1]]


def test_a_new_host_can_take_a_name_that_another_gives_up() -> None:
    table = table_of(*THREE)
    table.ensure_rows([(ProviderId(9), "a"), (ProviderId(1), "old a")])
    assert table.index_by_name == {"old a": 0, "b": 1, "c": 2, "a": 3}
    table.remove_row(ProviderId(1))
    assert table.index_by_name == {"a": 0, "b": 1, "c": 2}


@pytest.mark.parametrize("count", [ROWS_MIN - 1, ROWS_MIN, ROWS_MIN + 1, 5 * ROWS_MIN])
def test_growing_one_by_one_and_at_once_give_the_same(count: int) -> None:
    sketches = [host(f"h{number}", vcpus=number) for number in range(count)]
    slowly = table_of(*sketches)
    at_once = HostTable()
    at_once.ensure_rows((ProviderId(n), each.name) for n, each in enumerate(sketches, start=1))
    for index, each in enumerate(sketches):
        fill(at_once, HostIndex(index), each)
    assert differences(at_once, slowly) == []
    assert list(at_once.free["VCPU"]) == list(range(count))


def test_a_column_that_comes_late_has_all_rows() -> None:
    table = table_of(*THREE)
    assert not table.ensure_trait("LATE").any()
    table.ensure_class("CUSTOM_LATE")
    assert table.free["CUSTOM_LATE"].shape == (3,)
    row_for(table, 4, "d")


def test_views_stay_true_when_the_table_grows() -> None:
    table = table_of(host("a"))
    for number in range(2, 4 * ROWS_MIN):
        index = row_for(table, number, f"h{number}")
        table.free["VCPU"][index] = number
        table.is_open[index] = True
    assert table.free["VCPU"].sum() == 16 + sum(range(2, 4 * ROWS_MIN))
    assert table.is_open.all()


def test_clearing_a_row_leaves_its_facts_and_the_other_rows() -> None:
    table = table_of(*THREE)
    table.clear_row(HostIndex(1))
    assert [column[1] for column in (*table.free.values(), *table.used.values())] == [0] * 6
    assert table.generation(HostIndex(1)) == 12
    assert table.free["VCPU"][0] == 1


def test_taking_and_giving_back_are_inverse() -> None:
    table = table_of(*THREE)
    table.take(HostIndex(0), {"VCPU": 3, "DISK_GB": 7})
    assert (table.free["VCPU"][0], table.used["VCPU"][0]) == (-2, 3)
    table.give_back(HostIndex(0), {"VCPU": 3, "DISK_GB": 7})
    assert differences(table, table_of(*THREE)) == []


def test_rules_that_allow_an_amount_everywhere_need_no_mask() -> None:
    table = table_of(*THREE)
    assert table.gives("MEMORY_MB", 2, slice(None)) is None
    for amount, allowed in ((2, [True, True, True]), (3, [True, True, False])):
        given = table.gives("VCPU", amount, slice(None))
        assert given is not None
        assert list(given) == allowed


def test_agents_keep_their_codes_however_many_come() -> None:
    table = HostTable()
    for number in range(300):
        assert table.agent_code(AgentId(f"a{number}")) == number
        table.agent_seen_s[number] = number
    assert table.agent_code(AgentId("a7")) == 7
    assert list(table.agent_seen_s) == list(range(300))


def test_a_capability_column_follows_its_hosts() -> None:
    table = table_of(*THREE)
    first = table.capability("n")
    assert list(first.numbers[:2]) == [1, 2]
    assert np.isnan(first.numbers[2])
    assert table.capability("n") is first, "built once"
    table.set_capabilities(HostIndex(2), {"n": 3})
    assert list(table.capability("n").numbers) == [1, 2, 3]
    table.remove_row(ProviderId(1))
    assert list(table.capability("n").numbers) == [3, 2]
    row_for(table, 8, "h")
    assert list(table.capability("n").codes) == [0, 1, NO_CODE]


def test_a_class_that_a_host_lacks_is_not_free_there() -> None:
    table = table_of(host("a"), Sketch("b", {"CUSTOM_GOLD": 5}))
    assert list(table.free["CUSTOM_GOLD"]) == [0, 5]
    assert list(table.free["VCPU"]) == [16, 0]


def kept(*ids: int) -> list[CalendarHost]:
    """Hosts of the freepool with these providers."""
    return [CalendarHost(ProviderId(i), i, ProviderUuid(str(i)), None, {}, {}) for i in ids]


def test_the_calendars_hosts_have_the_rows_of_their_providers() -> None:
    table = HostTable()
    assert table.calendar_rows().tolist() == []
    table.calendar.replace_all(kept(7), [])
    assert table.calendar_rows().tolist() == [-1]
    table.ensure_rows((ProviderId(each), str(each)) for each in (9, 3, 7, 5))
    assert table.calendar_rows().tolist() == [2]
    table.calendar.replace_all(kept(3, 5, 8, 9, 10), [])
    assert table.calendar_rows().tolist() == [1, 3, -1, 0, -1]


def test_the_rows_of_the_calendars_hosts_follow_moves() -> None:
    table = HostTable()
    table.ensure_rows((ProviderId(each), str(each)) for each in (9, 3, 7, 5))
    table.calendar.replace_all(kept(3, 5, 9), [])
    assert table.calendar_rows().tolist() == [1, 3, 0]
    table.remove_row(ProviderId(9))
    assert table.calendar_rows().tolist() == [1, 0, -1]
    table.calendar.replace([ProviderId(3), ProviderId(7)], kept(7), [])
    ids = table.calendar.provider_ids.tolist()
    rows = dict(zip(ids, table.calendar_rows().tolist(), strict=True))
    assert rows == {5: 0, 7: 2, 9: -1}
