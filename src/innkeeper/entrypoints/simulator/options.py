"""The options of ``innkeeper simulate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from innkeeper.terminal.arguments import describe, seed

DESCRIPTION = """\
Replay arrivals and departures of servers on simulated hosts, with the service's own schedulers,
and compare policies. No service is needed, and nothing is written without --out."""
EXAMPLES = """\
traces: synthetic:DAYS[:SEED]; the folder of an arrival trace; a packing trace (SQLite); a
table of GPU pods (CSV); a table with a column arrival_s (CSV). The content tells which it is.

hosts: groups joined by "+", each [COUNTx]SHAPE[/KEY=VALUE]...; a shape is numbers with units,
such as 64c256g2000d (cores, GiB of memory, GB of disk), or "machine" for packing traces. Keys:
zone, trait, cpu_ratio, ram_ratio, disk_ratio, any resource class; any other key is a capability.
Or the name of a file of hosts (TOML, CSV) or of a recording.

policies: WEIGHERS is a comma-separated list of names, each with "=NUMBER" for its multiplier, or
the name of a set of weighers.

  innkeeper simulate --hosts 1000x64c256g --trace synthetic:3.5
  innkeeper simulate --hosts 64c128g+64c256g --trace synthetic:1 --compact --out results \\
    --policy spread=spread --policy best=FreeVcpusWeigher=-1,FreeMemoryWeigher=-1 \\
    --policy "any=;driver=chance"

exit status: 0 success; 2 failure"""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the options."""
    describe(command, DESCRIPTION, EXAMPLES)
    command.add_argument("--hosts", required=True, metavar="SPEC", help="the fleet; see below")
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
        "--seed", type=seed, default=0, metavar="N", help="decides ties (default: 0)"
    )
    chosen.add_argument(
        "--all-or-none",
        action="store_true",
        help="place all servers of a request or none; default: as many as possible",
    )
    shown = command.add_argument_group("the results")
    shown.add_argument(
        "--reference",
        metavar="SHAPE",
        help="capacity counts as stranded where this shape does not fit, such as 8c56g; default: "
        "the most frequent shape",
    )
    shown.add_argument(
        "--compact",
        action="store_true",
        help="search the smallest fleet that rejects no server, for each policy and shape",
    )
    shown.add_argument(
        "--out",
        type=_folder,
        metavar="DIR",
        help="write plots (PNG) and a page (HTML) to this folder; needs innkeeper[simulate]",
    )


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a folder")
    return Path(text)
