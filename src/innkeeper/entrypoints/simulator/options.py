"""The options of ``innkeeper simulate``."""

from __future__ import annotations

import argparse
from pathlib import Path

from innkeeper.domain.numerals import whole_of

SEED_MAX = 2**63 - 1
DESCRIPTION = """\
Replay arrivals and departures of servers on made-up hosts, with the schedulers that the service
itself uses, and compare policies. Nothing is written but what --out asks for, and no service is
needed."""
EXAMPLES = """\
traces: synthetic:DAYS[:SEED]; the folder of an arrival trace; a packing trace (SQLite); a
table of GPU pods (CSV); a table with a column arrival_s (CSV). Which it is, the content says.

hosts: groups with "+" between them, each [COUNTx]SHAPE[/KEY=VALUE]...; a shape is letters
behind numbers, as 64c256g2000d (cores, GiB of memory, GB of disk), or "machine" for packing
traces. Keys: zone, trait, cpu_ratio, ram_ratio, disk_ratio, any resource class, and any other
for a capability. Or the name of a file of hosts (TOML, CSV) or of a recording.

policies: WEIGHERS are names with commas between them, each with "=NUMBER" for its multiplier,
or the name of a set of weighers.

  innkeeper simulate --hosts 1000x64c256g --trace synthetic:3.5
  innkeeper simulate --hosts 64c128g+64c256g --trace synthetic:1 --compact --out results \\
    --policy spread=spread --policy best=FreeVcpusWeigher=-1,FreeMemoryWeigher=-1 \\
    --policy "any=;driver=chance"

exit status: 0 all was replayed; 2 it could not be done"""


def add(command: argparse.ArgumentParser) -> None:
    """Declare them."""
    command.description = DESCRIPTION
    command.epilog = EXAMPLES
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.add_argument("--hosts", required=True, metavar="SPEC", help="the fleet; see below")
    command.add_argument("--trace", required=True, metavar="FILE", help="who comes and goes")
    command.add_argument(
        "--machine", metavar="KIND", help="kind of machine, for packing traces that know several"
    )
    chosen = command.add_argument_group("what decides")
    chosen.add_argument("--filters", metavar="A,B", help="host filters; else the service's own")
    chosen.add_argument("--weighers", metavar="X,Y=2.0", help="weighers; else the service's own")
    chosen.add_argument("--driver", metavar="NAME", help="driver; else the service's own")
    chosen.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=WEIGHERS[;driver=D][;filters=A,B]",
        help="a policy to compare; may be given several times. What it does not say is as the "
        "options above",
    )
    chosen.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="decides ties (default: 0)"
    )
    chosen.add_argument(
        "--all-or-none",
        action="store_true",
        help="a request gets all of its servers or none; else as many as find a place",
    )
    shown = command.add_argument_group("what is shown")
    shown.add_argument(
        "--reference",
        metavar="SHAPE",
        help="capacity is stranded where this does not fit, as 8c56g; else the commonest shape",
    )
    shown.add_argument(
        "--compact",
        action="store_true",
        help="search for the smallest fleet that refuses nothing, for each policy and shape",
    )
    shown.add_argument(
        "--out",
        type=_folder,
        metavar="DIR",
        help="write plots (PNG) and a page (HTML) there; needs the extra innkeeper[simulate]",
    )


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a folder")
    return Path(text)


def _seed(text: str) -> int:
    number = whole_of(text)
    if number is None or not 0 <= number <= SEED_MAX:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {SEED_MAX}")
    return number
