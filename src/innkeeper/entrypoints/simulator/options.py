"""The options of ``innkeeper simulate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from innkeeper.domain.numerals import number_of, whole_of
from innkeeper.terminal.arguments import describe, seed

DAY_S = 86_400.0
LAG_MAX_S = DAY_S
PERIOD_MIN_S, PERIOD_MAX_S = 60.0, 30 * DAY_S
PROJECTS_MAX = 100_000
SIZE_MAX_GB = 1e6
# The simulation also defines these names. They are repeated here, because every program imports
# this module, and importing the simulation takes time.
DEALS = ("round-robin", "contiguous", "by-shape")
MERGES = ("by-weight", "in-turn")

DESCRIPTION = """\
Replay arrivals and departures of servers on simulated hosts, with the service's own schedulers,
and compare policies. No service is needed, and nothing is written without --out."""
EXAMPLES = """\
traces: synthetic:DAYS[:SEED]; the folder of an arrival trace; a packing trace (SQLite); a
table of GPU pods (CSV); a table with a column arrival_s (CSV). The kind is detected.

hosts: groups joined by "+", each [COUNTx]SHAPE[/KEY=VALUE]...; a shape is numbers with units,
such as 64c256g2000d (cores, GiB of memory, GB of disk), or "machine" for packing traces. Keys:
zone, trait, cpu_ratio, ram_ratio, disk_ratio, any resource class; any other key is a capability.
Or the name of a file of hosts (TOML, CSV) or of a recording.

trees: numbers of child zones by level, such as 20 or 10x10; or a TOML file with tables [[zones]],
which may contain [[zones.zones]]. Keys: name, share, weight_offset, weight_scale, weighers,
filters, driver.

pods: groups joined by "+", each [COUNTx]SHAPE[/KEY=VALUE]...; a shape such as 4000c16000g. Keys:
volumes (GB), threshold, weight, price, headroom (a shape), cpu_ratio, ram_ratio, disk_ratio, from
(the day on which it is added), drain (the day from which it gets no new work).

policies: WEIGHERS is a comma-separated list of names, each with "=NUMBER" for its multiplier, or
the name of a set of weighers.

  innkeeper simulate --hosts 1000x64c256g --trace synthetic:3.5
  innkeeper simulate --hosts 1000x64c256g --trace synthetic:3.5 --tree 20 --tree 10x10
  innkeeper simulate --hosts 64c128g+64c256g --trace synthetic:1 --compact --out results \\
    --policy spread=spread --policy best=FreeVcpusWeigher=-1,FreeMemoryWeigher=-1 \\
    --policy "any=;driver=chance"
  innkeeper simulate --pods 3x4000c16000g/volumes=100000 --trace synthetic:3.5 --projects 200 \
    --pod-policy fill=creation_time --pod-policy spread=idle_capacity

exit status: 0 success; 2 failure"""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    describe(command, DESCRIPTION, EXAMPLES)
    placed = command.add_mutually_exclusive_group(required=True)
    placed.add_argument("--hosts", metavar="SPEC", help="the fleet; see below")
    placed.add_argument(
        "--pods",
        metavar="SPEC",
        help="simulate a door with these pods, instead of hosts; see below",
    )
    command.add_argument("--trace", required=True, metavar="FILE", help="the servers; see below")
    command.add_argument("--machine", metavar="KIND", help="kind of machine, for packing traces")
    chosen = command.add_argument_group("the decisions")
    chosen.add_argument("--filters", metavar="A,B", help="host filters; default: the service's")
    chosen.add_argument("--weighers", metavar="X,Y=2.0", help="weighers; default: the service's")
    chosen.add_argument("--driver", metavar="NAME", help="driver; default: the service's")
    chosen.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=WEIGHERS[;driver=D][;filters=A,B]",
        help="a policy to compare; may be repeated. The options above are its defaults",
    )
    chosen.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="seed of all random choices (default: 0)"
    )
    chosen.add_argument(
        "--all-or-none",
        action="store_true",
        help="place all servers of a request or none; default: as many as possible",
    )
    _add_trees(command)
    _add_pods(command)
    shown = command.add_argument_group("the results")
    shown.add_argument(
        "--reference",
        metavar="SHAPE",
        help="free capacity counts as stranded on hosts where this shape, such as 8c56g, does not "
        "fit; default: the most frequent shape",
    )
    shown.add_argument(
        "--compact",
        action="store_true",
        help="find the smallest fleet that rejects no server, for each policy and shape",
    )
    shown.add_argument("--json", action="store_true", help="print the results as JSON")
    shown.add_argument(
        "--out",
        type=_folder,
        metavar="DIR",
        help="write plots (PNG) and a page (HTML) to this folder; needs innkeeper[simulate]",
    )


def _add_trees(command: argparse.ArgumentParser) -> None:
    trees = command.add_argument_group("trees of zones")
    trees.add_argument(
        "--tree",
        action="append",
        default=[],
        metavar="TREE",
        help="compare with a tree of zones that has the same hosts; may be repeated; see below",
    )
    trees.add_argument(
        "--deal",
        choices=DEALS,
        default=DEALS[0],
        help="how hosts are dealt to zones: in turn, in order, or equal hosts together "
        f"(default: {DEALS[0]})",
    )
    trees.add_argument(
        "--merge",
        choices=MERGES,
        default=MERGES[0],
        help="how a zone merges the offers of its children: by comparing all offers, or only the "
        f"next offer of each child (default: {MERGES[0]})",
    )
    trees.add_argument(
        "--lag",
        type=_seconds,
        default=0.0,
        metavar="S",
        help="zones see their hosts as of S seconds ago (default: 0)",
    )
    trees.add_argument(
        "--late",
        type=_probability,
        default=0.0,
        metavar="P",
        help="the probability that a child zone's answer comes too late (default: 0)",
    )


def _add_pods(command: argparse.ArgumentParser) -> None:
    pods = command.add_argument_group("pods, with --pods")
    pods.add_argument(
        "--pod-policy",
        action="append",
        default=[],
        metavar="NAME=WEIGHERS[;filters=A,B][;threshold=PERCENT][;pods=SPEC]",
        help="a policy of pods to compare; may be repeated",
    )
    pods.add_argument(
        "--projects",
        type=_projects,
        default=100,
        metavar="N",
        help="projects that share a trace without projects (default: 100)",
    )
    pods.add_argument(
        "--volume-share",
        type=_probability,
        default=0.5,
        metavar="P",
        help="the probability that a server gets a volume (default: 0.5)",
    )
    pods.add_argument(
        "--volume-gb",
        type=_size,
        default=100.0,
        metavar="GB",
        help="the mean size of volumes (default: 100)",
    )
    pods.add_argument(
        "--measure-s",
        type=_period,
        default=DAY_S,
        metavar="S",
        help="pods are measured every S seconds (default: a day)",
    )


def _projects(text: str) -> int:
    number = whole_of(text)
    if number is None or not 1 <= number <= PROJECTS_MAX:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {PROJECTS_MAX}")
    return number


def _size(text: str) -> float:
    number = number_of(text)
    if number is None or not 0 < number <= SIZE_MAX_GB:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and up to {SIZE_MAX_GB:.0f}")
    return number


def _period(text: str) -> float:
    number = number_of(text)
    if number is None or not PERIOD_MIN_S <= number <= PERIOD_MAX_S:
        raise argparse.ArgumentTypeError(
            f"must be a number from {PERIOD_MIN_S:.0f} to {PERIOD_MAX_S:.0f}"
        )
    return number


def _seconds(text: str) -> float:
    number = number_of(text)
    if number is None or not 0 <= number <= LAG_MAX_S:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to {LAG_MAX_S:.0f}")
    return number


def _probability(text: str) -> float:
    number = number_of(text)
    if number is None or not 0 <= number <= 1:
        raise argparse.ArgumentTypeError("must be a number from 0 to 1")
    return number


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a folder")
    return Path(text)
