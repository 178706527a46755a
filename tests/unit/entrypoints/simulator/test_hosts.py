"""Fleets as they are written on the command line and in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.domain.placing import BuildPlan
from innkeeper.entrypoints.simulator import host_files, hosts
from innkeeper.scheduling import recordings
from innkeeper.scheduling.recordings import Recipe, Recording
from innkeeper.scheduling.simulation.fleets import HostShape
from innkeeper.snapshot import recording
from tests.support.tables import asking, host, table_of


def test_one_group() -> None:
    (group,) = hosts.parse("1000x64c256g")
    assert group.count == 1000
    assert group.shape == HostShape("64c256g", {"VCPU": 64, "MEMORY_MB": 262144})


def test_groups_with_all_there_is_to_say() -> None:
    plain, rich = hosts.parse(
        "64c0.5g+3x8c512m2000d/zone=south/trait=HW_A/trait=CUSTOM_B/cpu_ratio=4/PGPU=2/"
        "gpu_model=T4/cores=8"
    )
    assert plain.count is None
    assert plain.shape.totals == {"VCPU": 64, "MEMORY_MB": 512}
    assert rich.shape.totals == {"VCPU": 8, "MEMORY_MB": 512, "DISK_GB": 2000, "PGPU": 2}
    assert rich.shape.zone == "south"
    assert rich.shape.traits == ("HW_A", "CUSTOM_B")
    assert rich.shape.ratios == {"VCPU": 4.0}
    assert rich.shape.capabilities == {"gpu_model": "T4", "cores": 8}
    assert rich.shape.capacity("VCPU", {"VCPU": 1000}) == 32_000


def test_a_machine_is_one_of_everything() -> None:
    (group,) = hosts.parse("5xmachine")
    assert set(group.shape.totals.values()) == {1}
    assert {"VCPU", "MEMORY_MB", "CUSTOM_SSD"} <= group.shape.totals.keys()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Write hosts as"),
        ("1000", "Write a shape as numbers"),
        ("10x", "Write a shape as numbers"),
        ("64c256g+", "Write hosts as"),
        ("0x64c", "from 1 to 1000000, not '0' as in '0x64c'"),
        ("-5x64c", "from 1 to 1000000, not '-5'"),
        ("x64c", "from 1 to 1000000, not ''"),
        ("1.5x64c", "from 1 to 1000000, not '1.5'"),
        ("infx64c", "from 1 to 1000000, not 'inf'"),
        ("1_0x64c", "from 1 to 1000000, not '1_0'"),
        ("\u0663x64c", "from 1 to 1000000"),
        ("9" * 5000 + "x64c", "from 1 to 1000000"),
        ("64c64c", "contains the amount of VCPU"),
        ("1g1m", "contains the amount of MEMORY_MB"),
        ("64z", "Write a shape as numbers"),
        ("0c", "whole number from 1 to 1099511627776"),
        ("0.5c", "whole number from 1 to"),
        ("9" * 5000 + "c", "whole number from 1 to"),
        ("nanc", "Write a shape as numbers"),
        ("infg", "Write a shape as numbers"),
        ("\u0663c", "Write a shape as numbers"),
        ("99999999999999999999c", "whole number"),
        ("-1c", "Write a shape as numbers"),
        ("64c/zone", "Expected KEY=VALUE"),
        ("64c/=a", "Expected KEY=VALUE"),
        ("64c/PGPU=x", "but must be a number"),
        ("64c/PGPU=nan", "PGPU is 'nan', but must be a number in digits"),
        ("64c/PGPU=1e999", "but must be a number in digits"),
        ("64c/PGPU=\u0663", "but must be a number in digits"),
        ("64c/PGPU=-1", "whole number from 1 to"),
        ("64c/PGPU=1e30", "whole number from 1 to"),
        ("64c/weight=nan", "The capability weight must not be 'nan'"),
        ("64c/weight=-Infinity", "must not be '-Infinity'"),
        ("64c/cpu_ratio=0", "The ratio of VCPU must be above 0 and at most 1000"),
        ("64c/ram_ratio=1001", "MEMORY_MB must be above 0 and at most 1000"),
        ("64c/cpu_ratio=nan", "cpu_ratio is 'nan', but must be a number"),
        ("9999999x64c", "from 1 to 1000000"),
        ("600000x64c+600000x8c", "at most 1000000 hosts"),
        ("1e3x64c", "from 1 to 1000000"),
    ],
)
def test_what_is_no_fleet(text: str, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        hosts.parse(text)


TOML = """\
[[hosts]]
count = 2
shape = "64c256g"
zone = "south"
traits = ["HW_A"]
ratios = { VCPU = 4, MEMORY_MB = 1.5 }
capabilities = { gpu_model = "T4", cores = 8 }
resources = { PGPU = 2 }

[[hosts]]
name = "small"
vcpus = 4
memory_mb = 8192
"""


def test_a_file_of_hosts(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(TOML, encoding="utf-8")
    assert hosts.file_of(str(path)) == path
    first, second = host_files.load(path)
    assert (first.count, second.count) == (2, 1)
    assert first.shape.totals == {"VCPU": 64, "MEMORY_MB": 262144, "PGPU": 2}
    assert first.shape.ratios == {"VCPU": 4.0, "MEMORY_MB": 1.5}
    assert first.shape.capabilities == {"gpu_model": "T4", "cores": 8}
    assert (first.shape.zone, first.shape.traits) == ("south", ("HW_A",))
    assert second.shape == HostShape("small", {"VCPU": 4, "MEMORY_MB": 8192})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must have tables"),
        ("hosts = 3", "must have tables"),
        ("hosts = [3]", "number 1 is not a table"),
        ("[[hosts]]", "has no resources"),
        ("[[hosts]]\nvcpus = 'x'", "number 1: vcpus is 'x'"),
        ("[[hosts]]\nvcpus = 4\nvcpu = 1", "has unknown keys: vcpu"),
        ("[[hosts]]\nvcpus = 4\ncount = 0", "count must be a whole number from 1 to"),
        ("[[hosts]]\nvcpus = true", "vcpus is True"),
        ("[[hosts]]\nvcpus = 4\nratios = { VCPU = 0 }", "The ratio of VCPU must be above 0"),
        ("[[hosts]]\nvcpus = 4\nratios = { VCPU = nan }", "The ratio of VCPU must be above 0"),
        ("[[hosts]]\nvcpus = 4\nratios = { VCPU = 0x" + "f" * 400 + " }", "The ratio of"),
        ("[[hosts]]\nvcpus = 0x" + "f" * 400, "whole number from 1 to"),
        ("[[hosts]]\nvcpus = 4\nzone = 0x" + "f" * 4000, "zone is a number of thousands of"),
        ("[[hosts]]\nvcpus = " + "9" * 5000, "is not valid TOML"),
        ("[[hosts]]\nvcpus = 4\ncapabilities = { w = nan }", "the capability w is nan"),
        ("[[hosts]]\nvcpus = 4\ncapabilities = { a.b = [1e300] }", "capability a.b is 1e"),
        ("[[hosts]]\nvcpus = 4\ncapabilities = { d = 2026-11-20 }", "capability d is datetime"),
        ("[[hosts]]\nvcpus = 4\ntraits = [1]", "traits is 1"),
        ("[[hosts]]\nvcpus = 4\nresources = { gold = 1 }", "'gold' is not a valid name"),
        ("[[hosts]]\nshape = '64z'", "number 1: Write a shape as numbers"),
        ("[[hosts", "is not valid TOML"),
        ("[[hosts]]\nvcpus = 1\n[other]", "must have tables"),
    ],
)
def test_a_file_of_hosts_that_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Invalid, match=told):
        host_files.load(path)


def test_a_table_of_hosts(tmp_path: Path) -> None:
    path = tmp_path / "fleet.csv"
    path.write_text(
        "count,name,vcpus,memory_mb,PGPU,cpu_ratio,zone,traits\n"
        "3,a,8,1024,,4,south,HW_A HW_B\n,,4,512,1,,,\n",
        encoding="utf-8",
    )
    first, second = host_files.load(path)
    assert (first.count, second.count) == (3, 1)
    assert first.shape == HostShape(
        "a", {"VCPU": 8, "MEMORY_MB": 1024}, {"VCPU": 4.0}, "south", ("HW_A", "HW_B")
    )
    assert second.shape == HostShape("line 3", {"VCPU": 4, "MEMORY_MB": 512, "PGPU": 1})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("vcpus,colour\n1,red\n", "has unknown columns: colour"),
        ("count\n1\n", "has no amounts"),
        ("vcpus\n", "contains no hosts"),
        ("vcpus\n0\n", "line 2: A host line 2 has no resources"),
        ("vcpus,cpu_ratio\n1,9999\n", "line 2: The ratio of VCPU"),
        ("vcpus\ninf\n", "line 2: vcpus is 'inf', which is not a number"),
        ("vcpus\n1e30\n", "line 2: vcpus is 1e30, but must be 9007199254740992 or less"),
        ("vcpus\n\u0663\n", "line 2: vcpus is '\u0663', which is not a number"),
        ("vcpus,count\n1,0\n", "line 2: count is 0"),
    ],
)
def test_a_table_of_hosts_that_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "fleet.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(Invalid, match=told):
        host_files.load(path)


def test_the_nodes_of_the_gpu_trace(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(
        "sn,cpu_milli,memory_mib,gpu,model\n"
        "n-1,32000,262144,0,nan\nn-2,96000,786432,8,V100M32\nn-3,32000,262144,0,\n",
        encoding="utf-8",
    )
    plain, rich = host_files.load(path)
    assert (plain.count, rich.count) == (2, 1)
    assert plain.shape.totals == {"VCPU": 32, "MEMORY_MB": 262144}
    assert rich.shape.totals == {"VCPU": 96, "MEMORY_MB": 786432, "PGPU": 8}
    assert rich.shape.capabilities == {"gpu_model": "V100M32"}


def test_what_is_no_file_is_a_fleet() -> None:
    assert hosts.file_of("1000x64c256g") is None
    assert hosts.file_of("x" * 5000) is None
    assert hosts.file_of("a\0b") is None


def test_the_hosts_of_a_recording(tmp_path: Path) -> None:
    table = table_of(
        host("a", vcpus=5, traits=("HW_A",), capabilities={"gpu_model": "T4"}, zone="south"),
        host("b", vcpus=24, units={"VCPU": (1, 16, 1)}),
        host("closed", is_open=False),
        host("c", vcpus=24, units={"VCPU": (1, 16, 1)}),
    )
    moment = recording.copy_of(table)
    spec = asking()
    recipe = Recipe("all_at_once", ("ComputeFilter",), (("FreeMemoryWeigher", 1.0),), 1, 1)
    made = BuildPlan((), {}, table.host_count, 0, ())
    path = tmp_path / "some.recording"
    path.write_bytes(recordings.write(Recording(moment, spec, recipe, made, "now", "label")))
    first, second = host_files.load(path)
    assert (first.count, second.count) == (1, 2)
    assert first.shape.totals == {"VCPU": 5, "MEMORY_MB": 32768, "DISK_GB": 500}
    assert (first.shape.zone, first.shape.traits) == ("south", ("HW_A",))
    assert first.shape.capabilities == {"gpu_model": "T4"}
    assert second.shape.totals["VCPU"] == 16
    assert second.shape.capacity("VCPU", {}) == 24
    path.write_bytes(b"PK\x03\x04 and then nothing of the kind")
    with pytest.raises(Invalid):
        host_files.load(path)
