"""The real command: its output, its plots and files, and its errors."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

BEST = "best=FreeVcpusWeigher=-1,FreeMemoryWeigher=-1"
PLOTS = {"packing.png", "stranded.png", "empty.png", "acceptance.png", "decisions.png"}
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
CALLED_FOR = ("src", "href", "srcset", "action", "data", "poster", "background")
"""Attributes whose values a browser loads."""


def simulate(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "innkeeper.main", "simulate", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, **(environment or {})},
    )


def rows(text: str, title: str) -> dict[str, list[str]]:
    """The rows of a printed table, by their first cells."""
    _, _, below = text.partition(f"{title}:\n")
    lines = below.split("\n\n")[0].splitlines()
    return {cells[0]: cells[1:] for line in lines if (cells := re.split(r"\s{2,}", line.strip()))}


class Page(HTMLParser):
    """The addresses that a page loads, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.called += [value or "" for name, value in attrs if name in CALLED_FOR]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def is_drawn(png: bytes) -> bool:
    """Whether a picture is a PNG with more than one color."""
    assert png.startswith(PNG_HEAD)
    pixels = imread(BytesIO(png), format="png")
    return bool(pixels.shape[0] > 100 and pixels.shape[1] > 100 and np.unique(pixels).size > 2)


@pytest.mark.slow
def test_policies_are_compared(tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = simulate(
        *("--hosts", "30x64c128g+30x64c256g", "--trace", "synthetic:0.1:3", "--seed", "4"),
        *("--policy", "spread=spread", "--policy", BEST, "--policy", "any=;driver=chance"),
        *("--reference", "8c56g", "--out", str(out)),
    )
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    accepted = rows(done.stdout, "Acceptance, in servers")
    assert accepted.keys() == {"policy", "spread", "best", "any"}
    by_flavor = rows(done.stdout, "Acceptance by flavor, in servers")
    for number, name in enumerate(("spread", "best", "any")):
        requested, placed, refused = (int(cell) for cell in accepted[name][:3])
        assert requested == placed + refused > 1000
        assert (accepted[name][4] == "never") == (refused == 0)
        flavors = [cells for first, cells in by_flavor.items() if first != "flavor"]
        assert sum(int(cells[0]) for cells in flavors) == requested
        assert sum(int(cells[1 + 2 * number]) for cells in flavors) == placed
        assert sum(int(cells[2 + 2 * number]) for cells in flavors) == refused
    packed = rows(done.stdout, "Packing, fragmentation and empty hosts, on average over time")
    assert float(packed["best"][6]) > float(packed["spread"][6]), "packing leaves hosts empty"
    decided = rows(done.stdout, "Time to decide")
    assert all(float(cells[2]) > 0 for name, cells in decided.items() if name != "policy")
    assert "any: 4" in done.stderr, "how far it has come is told"

    assert {path.name for path in out.iterdir()} == {*PLOTS, "simulation.html"}
    text = (out / "simulation.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    bare = re.sub(r"data:image/png;base64,[\w+/=]+", "", text)
    assert not re.search(r"https?:|//|@import|url\(|data:", bare), "it calls for nothing"
    assert not {"script", "link", "iframe"} & set(page.tags)
    pictures = [each.removeprefix("data:image/png;base64,") for each in page.called]
    assert {base64.b64decode(each, validate=True) for each in pictures} == {
        (out / name).read_bytes() for name in PLOTS
    }
    assert all(is_drawn((out / name).read_bytes()) for name in PLOTS)
    words = " ".join(page.words)
    for cells in accepted.values():
        assert all(cell in words for cell in cells)


@pytest.mark.slow
def test_the_smallest_fleet_is_found(tmp_path: Path) -> None:
    out = tmp_path / "results"
    trace = tmp_path / "own.csv"
    # Two overlapping batches, which together need 20 cores or 40 GiB.
    trace.write_text(
        "arrival_s,lifetime_s,vcpus,memory_mb,count\n0,100,1,2048,10\n50,100,1,2048,10\n"
        "200,10,2,1024,3\n",
        encoding="utf-8",
    )
    done = simulate(
        *("--hosts", "4c8g+4c4g", "--trace", str(trace), "--compact", "--out", str(out)),
        *("--policy", "spread=spread", "--policy", BEST),
    )
    assert done.returncode == 0, done.stderr
    title = "The smallest fleet that refuses nothing, in hosts"
    printed = done.stdout.partition(f"{title}:\n")[2].split("\n\n")[0].splitlines()[1:]
    found = [re.split(r"\s{2,}", line.strip()) for line in printed]
    assert found == [
        ["4c8g", "spread", "5", "5.0", "cores", "100.0 %"],
        ["4c8g", "best", "5", "5.0", "cores", "100.0 %"],
        ["4c4g", "spread", "10", "10.0", "memory", "100.0 %"],
        ["4c4g", "best", "10", "10.0", "memory", "100.0 %"],
    ]
    assert "do 5 hosts 4c8g suffice?" in done.stderr
    assert {path.name for path in out.iterdir()} == {"compaction.png", "simulation.html"}
    assert is_drawn((out / "compaction.png").read_bytes())


def test_trees_of_zones_are_compared_with_one_zone(tmp_path: Path) -> None:
    tree = tmp_path / "own.toml"
    tree.write_text('[[zones]]\nname = "a"\nshare = 3\n[[zones]]\nname = "b"\n', encoding="utf-8")
    done = simulate(
        *("--hosts", "20x64c256g", "--trace", "synthetic:0.02:1"),
        *("--tree", "2x2", "--tree", str(tree), "--lag", "60", "--late", "0.1", "--json"),
    )
    assert done.returncode == 0, done.stderr
    replays = {each["policy"]: each for each in json.loads(done.stdout)["replays"]}
    flat, fixed, deep, own = replays.values()
    assert list(replays) == [
        "default",
        "default, fixed scales",
        "default, tree 2x2",
        "default, tree own",
    ]
    assert flat["tree"] is fixed["tree"] is None
    assert [zone["hosts"] for zone in own["tree"]["zones"]] == [15, 5]
    assert len(deep["tree"]["zones"]) == 4
    assert own["tree"]["calls"]["late"] > 0
    assert all(each["requested"] == flat["requested"] for each in replays.values())


def test_the_same_seed_prints_the_same() -> None:
    arguments = ("--hosts", "20x64c256g", "--trace", "synthetic:0.02:1", "--seed")
    first, again = (simulate(*arguments, "9") for _ in range(2))
    assert first.returncode == 0, first.stderr

    def without_times(text: str) -> str:
        before, _, after = text.partition("Time to decide")
        return before + after.partition("\n\n")[2]

    assert without_times(first.stdout) == without_times(again.stdout)


def test_numbers_need_no_matplotlib_and_plots_say_that_they_do(tmp_path: Path) -> None:
    # The import fails as if the library were not installed.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['matplotlib'] = None\n", encoding="utf-8"
    )
    without = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    arguments = ("--hosts", "5x64c256g", "--trace", "synthetic:0.01")
    numbers = simulate(*arguments, environment=without)
    assert numbers.returncode == 0, numbers.stderr
    assert "Acceptance, in servers" in numbers.stdout
    plots = simulate(*arguments, "--out", str(tmp_path / "out"), environment=without)
    assert plots.returncode == 2
    assert "install innkeeper[simulate]" in plots.stderr
    assert plots.stdout == "", "it says so before the replay"


@pytest.mark.parametrize(
    ("package", "reported"),
    [
        ("raise ImportError('no such symbol\\nand much more')\n", "ImportError: no such symbol)"),
        ("raise RuntimeError('made for another machine.')\n", "RuntimeError: made for another"),
        ("this is no program\n", "SyntaxError: "),
        ("", "ModuleNotFoundError: No module named 'matplotlib.axes'"),
        ("import sys\nsys.no_such_thing()\n", "AttributeError: "),
        ("raise ValueError\n", "(ValueError)"),
    ],
)
def test_a_broken_matplotlib_is_reported_before_the_replay(
    tmp_path: Path, package: str, reported: str
) -> None:
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "__init__.py").write_text(package, encoding="utf-8")
    broken = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    out = tmp_path / "out"
    arguments = ("--hosts", "5x64c256g", "--trace", "synthetic:0.01", "--out", str(out))
    done = simulate(*arguments, environment=broken)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    needed = "innkeeper simulate: Plots and the page need matplotlib, which is installed"
    assert line.startswith(needed)
    assert reported in line
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--hosts", "5x64c", "--trace", "nowhere.csv"], "Cannot read nowhere.csv"),
        (["--hosts", "64z", "--trace", "synthetic:1"], "Write a shape as numbers"),
        (["--hosts", "64c256g", "--trace", "synthetic:0.01"], "or use --compact"),
        (["--hosts", "64c9g+3x64c9g", "--trace", "synthetic:0.01"], "hosts for all groups"),
        (["--hosts", "9x64c9g", "--trace", "synthetic:x"], "A synthetic trace is"),
        (["--hosts", "9x64c9g", "--trace", "synthetic:1", "--driver", "x"], "no driver 'x'"),
        (["--hosts", "9x64c9g", "--trace", "synthetic:1", "--reference", "?"], "Write a shape as"),
        (["--hosts", "2c9g", "--trace", "synthetic:0.01", "--compact"], "is enough for 4c7g"),
        (["--hosts", "64c", "--trace", "synthetic:0.01", "--compact"], "is enough for 1c0.75g"),
        (["--hosts", "9x64c9g", "--trace", "synthetic:0.01", "--seed", "-1"], "whole number"),
        (
            ["--hosts", "9x64c9g", "--trace", "synthetic:1", "--seed", "\u0663"],
            "must be a whole number between 0 and 9223372036854775807",
        ),
        (["--hosts", "nanx64c9g", "--trace", "synthetic:1"], "from 1 to 1000000, not 'nan'"),
        (["--hosts", "9x64c9g", "--trace="], "The trace has no name"),
        (["--hosts", "9x64c9g", "--trace", "synthetic:1", "--machine", "x"], "--machine is"),
        (["--hosts", "9x64c9g", "--trace", "synthetic:1", "--out="], "name of a folder"),
        (["--trace", "synthetic:1"], "--hosts"),
    ],
)
def test_errors_are_reported_in_one_line(arguments: list[str], reported: str) -> None:
    done = simulate(*arguments)
    assert done.returncode == 2
    assert reported in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    arguments = ("--hosts", "5x64c256g", "--trace", "synthetic:0.01")
    done = simulate(*arguments, "--out", str(tmp_path / "file"))
    assert done.returncode == 2
    assert done.stderr.startswith("innkeeper simulate: ")
    assert "Traceback" not in done.stderr


def test_a_service_does_not_import_matplotlib() -> None:
    """The service must not need the libraries of plots."""
    code = (
        "import sys; from innkeeper import commands, main; main.parser();"
        "print([name for name in sys.modules if name.startswith(('matplotlib',"
        "'innkeeper.entrypoints.simulator.', 'innkeeper.scheduling.simulation'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "['innkeeper.entrypoints.simulator.options']"


def test_pods_are_compared_on_the_same_work() -> None:
    arguments = ("--trace", "synthetic:0.02", "--projects", "10", "--pods", "2x1000c4000g")
    policies = ("--pod-policy", "fill=creation_time", "--pod-policy", "one=;pods=2000c8000g")
    shown = simulate(*arguments, *policies)
    assert shown.returncode == 0, shown.stderr
    found = rows(shown.stdout, "Bindings of projects")
    assert set(found) == {"policy", "fill", "one"}
    assert set(rows(shown.stdout, "Pods with the policy fill")) == {"pod", "p1", "p2"}
    again = simulate(*arguments, *policies, "--json")
    assert json.loads(again.stdout)["policies"][1]["moves"] == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--pods", "10c", "--tree", "2"), "--tree is for hosts"),
        (("--pods", "10c", "--out", "x"), "--out is for hosts"),
        (("--hosts", "10x10c", "--pod-policy", "a="), "--pod-policy is for pods"),
        (("--pods", "10c", "--hosts", "10x10c"), "not allowed with"),
        ((), "required"),
        (("--pods", "10c", "--projects", "0"), "whole number"),
        (("--pods", "10c", "--measure-s", "1"), "must be a number from 60"),
    ],
)
def test_options_of_pods_and_hosts_do_not_mix(arguments: tuple[str, ...], why: str) -> None:
    shown = simulate("--trace", "synthetic:0.01", *arguments)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert why in shown.stderr
