"""Loaders: small files in each format, and the errors for wrong files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from innkeeper.domain.errors import Invalid
from innkeeper.entrypoints.simulator.traces.detection import load
from innkeeper.scheduling.simulation.workload import NEVER, Workload

FLAVORS = "1,0.75 a\n1,1.75 b\n8,56 o\n"
INTERVALS = "0 0\n300 1\n600 2\n900 2\n1200 2\n"
ARRIVALS = "600 b,b,|,a,|,o,b\n900 |,\n1200 a,|,\n"
DURATIONS = "600 U0,U2,|,C1,|,U1,U1\n900 |,\n1200 U2,|,\n"


def folder(path: Path, **files: str) -> Path:
    """An arrival trace, with some of its files as a test wants them."""
    wanted = {
        "few.txt": ARRIVALS,
        "few.c1500.txt": DURATIONS,
        "flav_map.txt": FLAVORS,
        "few.interval_map.txt": INTERVALS,
    }
    for name, text in (wanted | {key.replace("_dot_", "."): t for key, t in files.items()}).items():
        if text:
            (path / name).write_text(text, encoding="utf-8")
    return path


def lifetimes(workload: Workload) -> list[float]:
    found: list[float] = (workload.leavings_s - workload.arrivals_s).tolist()
    return found


def test_an_arrival_trace(tmp_path: Path) -> None:
    workload = load(str(folder(tmp_path)), None)
    assert [shape.name for shape in workload.shapes] == ["1c0.75g", "1c1.75g", "8c56g"]
    assert [dict(shape.amounts) for shape in workload.shapes][1] == {"VCPU": 1, "MEMORY_MB": 1792}
    assert workload.arrivals_s.tolist() == [600.0] * 5 + [1200.0]
    assert workload.shape_codes.tolist() == [1, 1, 0, 2, 1, 0]
    # Lifetime 0 counts as half a bin. Between 600 and 1200, it is 900. C stays for ever.
    assert lifetimes(workload) == [150.0, 900.0, NEVER, 300.0, 300.0, 900.0]
    # Batches: two equal servers, one server, two of different shapes, and one in the next line.
    assert workload.requests().tolist() == [0, 2, 3, 4, 5, 6]


def test_its_file_may_be_named_and_shapes_that_nobody_has_are_left_out(tmp_path: Path) -> None:
    where = folder(tmp_path, few_dot_txt="600 b,|,\n", few_dot_c1500_dot_txt="600 U1,|,\n")
    workload = load(str(where / "few.txt"), None)
    assert [shape.name for shape in workload.shapes] == ["1c1.75g"]
    assert workload.shape_codes.tolist() == [0]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"few_dot_txt": "600 b,b,|,z,|,o,b\n"}, r"few\.txt, line 1: .* lacks 'z'"),
        ({"few_dot_txt": "600 b,b\n"}, "line 1: expected as many entries"),
        ({"few_dot_txt": "600 b,b,|,a,|,o,b\nnonsense\n"}, "line 2: expected a second"),
        ({"few_dot_c1500_dot_txt": DURATIONS.replace("900", "901")}, "line 2: .* same second"),
        ({"few_dot_c1500_dot_txt": DURATIONS.replace("C1", "X1")}, "line 1: .* not 'X1'"),
        ({"few_dot_c1500_dot_txt": DURATIONS.replace("C1", "C9")}, "line 1: .* not 'C9'"),
        ({"few_dot_c1500_dot_txt": ""}, "must contain one few"),
        ({"flav_map_dot_txt": ""}, "flav_map"),
        ({"flav_map_dot_txt": "1;2 a\n"}, "line 1: expected CORES,GIGABYTES LETTER"),
        ({"flav_map_dot_txt": "1,1 a\n1,2 a\n"}, "one letter twice"),
        ({"few_dot_interval_map_dot_txt": "0 zero\n"}, "line 1: expected SECONDS BIN"),
        ({"few_dot_txt": "600 |,\n", "few_dot_c1500_dot_txt": "600 |,\n"}, "no servers"),
        ({"few_dot_txt": ""}, "must contain one arrival trace; found: none"),
        ({"more_dot_txt": ARRIVALS}, "found: few.txt, more.txt"),
    ],
)
def test_an_arrival_trace_that_is_wrong(tmp_path: Path, files: dict[str, str], told: str) -> None:
    with pytest.raises(Invalid, match=told):
        load(str(folder(tmp_path, **files)), None)


def packing(path: Path, types: list[tuple[object, ...]], servers: list[tuple[object, ...]]) -> str:
    """A packing trace with these rows."""
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE vmType (id, vmTypeId, machineId, core, memory, hdd, ssd, nic)")
    database.execute("CREATE TABLE vm (vmId, tenantId, vmTypeId, priority, starttime, endtime)")
    database.executemany("INSERT INTO vmType VALUES (?,?,?,?,?,?,?,?)", types)
    database.executemany("INSERT INTO vm VALUES (?,?,?,?,?,?)", servers)
    database.commit()
    database.close()
    return str(path)


TYPES: list[tuple[object, ...]] = [
    (1, 10, 0, 0.5, 0.25, None, 0.125, 0.1),
    (2, 11, 0, 1 / 3, 0.5, None, 0.0, 0.2),
    (3, 10, 7, 0.25, 0.125, None, 0.1, 0.1),
]
SERVERS: list[tuple[object, ...]] = [
    (1, 100, 10, 0, -0.5, 1.0),
    (2, 100, 10, 0, 0.25, None),
    (3, 100, 10, 1, 0.25, 0.5),
    (4, 200, 10, 1, 0.25, 0.5),
    (5, 200, 11, 0, 0.5, 0.75),
]


def test_a_packing_trace_on_the_machine_that_takes_most(tmp_path: Path) -> None:
    workload = load(packing(tmp_path / "some.sqlite", TYPES, SERVERS), None)
    assert [dict(shape.amounts) for shape in workload.shapes] == [
        {"VCPU": 500_000, "MEMORY_MB": 250_000, "CUSTOM_SSD": 125_000, "CUSTOM_NIC": 100_000},
        {"VCPU": 333_333, "MEMORY_MB": 500_000, "CUSTOM_NIC": 200_000},
    ]
    assert workload.parts["VCPU"] == 1_000_000
    assert workload.arrivals_s.tolist() == [-43200.0, 21600.0, 21600.0, 21600.0, 43200.0]
    assert lifetimes(workload) == [129600.0, NEVER, 21600.0, 21600.0, 21600.0]
    assert workload.requests().tolist() == [0, 1, 3, 4, 5]
    assert workload.project_codes is not None
    assert workload.project_codes.tolist() == [0, 0, 0, 1, 1]
    assert "0 of 5 servers do not run on it" in workload.notes[0]


def test_a_packing_trace_on_another_machine(tmp_path: Path) -> None:
    path = packing(tmp_path / "some.sqlite", TYPES, SERVERS)
    workload = load(path, "7")
    assert workload.count == 4
    assert "1 of 5 servers do not run on it" in workload.notes[0]
    with pytest.raises(
        Invalid, match="no machine type '9'; the types that most servers fit are 0, 7"
    ):
        load(path, "9")


@pytest.mark.parametrize(
    ("types", "servers", "told"),
    [
        ([], SERVERS, "no server that fits any machine"),
        (TYPES, [(1, 1, 10, 0, 2.0, 1.0)], "starts at 2 and ends at 1.0"),
        (TYPES, [(1, 1, 10, 0, "soon", None)], "starts at 'soon'"),
        ([(1, 10, 0, "much", 0, 0, 0, 0)], SERVERS, "takes 'much' of core"),
        ([(1, 10, 0, 0, 0, 0, 0, 0)], SERVERS, "has no amounts"),
        ([TYPES[0], TYPES[0]], SERVERS, "type 10 twice"),
    ],
)
def test_a_packing_trace_that_is_wrong(
    tmp_path: Path, types: list[tuple[object, ...]], servers: list[tuple[object, ...]], told: str
) -> None:
    with pytest.raises(Invalid, match=told):
        load(packing(tmp_path / "bad.sqlite", types, servers), None)


def test_another_database_is_no_packing_trace(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "other.sqlite")
    database.execute("CREATE TABLE vm (vmId)")
    database.commit()
    database.close()
    with pytest.raises(Invalid, match="table vm lacks endtime, starttime, tenantId, vmTypeId"):
        load(str(tmp_path / "other.sqlite"), None)
    (tmp_path / "cut.sqlite").write_bytes(b"SQLite format 3\0" + b"\x01" * 200)
    with pytest.raises(Invalid, match="Cannot read cut"):
        load(str(tmp_path / "cut.sqlite"), None)


PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p-1,12000,16384,1,460,,LS,Running,20,80,30
p-2,6000,12288,2,1000,V100M16|T4,LS,Succeeded,10,25,10
p-3,500,1024,0,0,nan,BE,Pending,15,,
"""


def test_pods_with_gpus(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(PODS, encoding="utf-8")
    workload = load(str(path), None)
    assert workload.arrivals_s.tolist() == [10.0, 15.0, 20.0]
    assert lifetimes(workload) == [15.0, NEVER, 50.0]
    two, cores, shared = (workload.shapes[code] for code in workload.shape_codes)
    assert dict(two.amounts) == {"VCPU": 6000, "MEMORY_MB": 12288, "PGPU": 2000}
    assert two.comparisons[0].name == "gpu_model"
    assert two.comparisons[0].operands == ("V100M16", "T4")
    assert dict(cores.amounts) == {"VCPU": 500, "MEMORY_MB": 1024}
    assert shared.amounts["PGPU"] == 460
    assert shared.comparisons == ()
    assert workload.parts == {"VCPU": 1000, "PGPU": 1000}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("20,80,30", "20,8,30", "line 2: the pod is deleted before it begins"),
        ("1,460,", "1,0,", "line 2: gpu_milli is 0"),
        ("12000,", "many,", "line 2: cpu_milli is 'many', which is not a number"),
        ("12000,", "-5,", "line 2: cpu_milli is -5, but must be 0 or more"),
        ("12000,", "1.5,", "line 2: cpu_milli is 1.5, but must be a whole number"),
        ("12000,", "1e400,", "line 2: cpu_milli"),
        (",20,80,30", ",,80,30", "line 2: creation_time is missing"),
        ("V100M16|T4", "||", r"line 3: gpu_spec is '\|\|'"),
        ("500,1024,", "0,0,", "line 4: the pod requests no resources"),
        (",20,80,30", ",20,80", "line 2: 10 cells, but the header has 11"),
        ("scheduled_time", "when", "lacks the columns scheduled_time"),
        ("memory_mib", "name", "lacks the columns memory_mib"),
    ],
)
def test_pods_that_are_wrong(tmp_path: Path, before: str, after: str, told: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(PODS.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(Invalid, match=told):
        load(str(path), None)


PLAIN = """\
arrival_s,lifetime_s,vcpus,memory_mb,disk_gb,PGPU,count,batch,project,flavor
30,,2,4096,,,,,,
10,60,1,2048,10,,3,web,ours,small
10,60,2,4096,,1,,web,ours,
12.5,0,1,2048,10,,,,theirs,small
"""


def test_a_plain_table(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(PLAIN, encoding="utf-8")
    workload = load(str(path), None)
    assert workload.arrivals_s.tolist() == [10.0, 10.0, 10.0, 10.0, 12.5, 30.0]
    assert np.round(lifetimes(workload), 6).tolist() == [60.0, 60.0, 60.0, 60.0, 0.0, NEVER]
    assert [workload.shapes[code].name for code in workload.shape_codes] == [
        *["small"] * 3,
        "2c4096m1 PGPU",
        "small",
        "2c4096m",
    ]
    assert workload.requests().tolist() == [0, 3, 4, 5, 6]
    assert len(set(workload.batches[:4].tolist())) == 1
    assert workload.project_codes is not None
    assert [workload.projects[code] for code in workload.project_codes] == [
        *["ours"] * 4,
        "theirs",
        "trace",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("30,,2", "soon,,2", "line 2: arrival_s is 'soon', which is not a number"),
        ("30,,2", ",,2", "line 2: arrival_s is missing"),
        ("30,,2,4096", "30,,,", "line 2: the server requests no resources"),
        ("10,60,1", "10,-60,1", "line 3: lifetime_s is -60, but must be 0 or more"),
        ("10,60,1", "10,nan0,1", "line 3: lifetime_s is 'nan0'"),
        (",3,web", ",0,web", "line 3: count is 0, but must be 1 or more"),
        (",3,web", ",99999999,web", "line 3: more than 20000000 servers"),
        ("10,60,1,", '10,60,"1,', "line 3"),
        ("disk_gb", "discs", "unknown column 'discs'"),
        ("batch", "count", "two columns with the same name"),
        ("10,60,1", "10,\0,1", "line 3: this is not text"),
    ],
)
def test_a_plain_table_that_is_wrong(tmp_path: Path, before: str, after: str, told: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text(PLAIN.replace(before, after, 1), encoding="utf-8")
    with pytest.raises(Invalid, match=told):
        load(str(path), None)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"hello,world\n1,2\n", "not a known trace"),
        (b"arrival_s\n1\n", "has no amounts for its servers"),
        (b"arrival_s,vcpus\n", "no servers"),
        (b"\xff\xfe\x00arrival_s", "not a text file"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not a text file"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "something"
    path.write_bytes(content)
    with pytest.raises(Invalid, match=told):
        load(str(path), None)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="No such file"):
        load(str(tmp_path / "nowhere"), None)
    with pytest.raises(Invalid, match="must contain one arrival trace"):
        load(str(tmp_path), None)


def test_only_packing_traces_know_machines(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(PLAIN, encoding="utf-8")
    with pytest.raises(Invalid, match="--machine is for packing traces"):
        load(str(path), "7")
