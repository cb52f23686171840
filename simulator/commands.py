"""A simulated centre that writes raw logs.

python -m simulator demo --seed 1 --out DIR
python -m simulator demo --ends 2026-11-22 --out DIR
python -m simulator site --ends 2026-11-22 --out FILE
python -m simulator demo --start 2017-07-05 --days 3 --rate 1 --poll 600 --out DIR
python -m simulator feeds --portal http://127.0.0.1:8000 --out DIR
python -m simulator past --out DIR
python -m simulator live --out DIR
python -m simulator incident --seed 7 --out DIR
python -m simulator labelled --seed 7 DIR
python -m simulator experiments --out DIR
python -m simulator rpctrace --lines 1000000 --nids 300 --out FILE
python -m simulator job_stats --jobs 50000 --out DIR
"""

import argparse
from pathlib import Path

from simulator import clock, constructed, demo, faults, feeds, incident, live, past, site
from simulator.experiments import examples
from simulator.faults import Faults
from simulator.formats import site_toml
from simulator.formats.rpctrace import Version
from simulator.labelled import labelled_set
from simulator.plan import Plan

_DEFAULT = Plan()


def run(dates: argparse.ArgumentParser) -> None:
    """Write the files that the command line requests.

    Args:
        dates: options of the story's dates, which apply already.
    """
    arguments = _parser(dates).parse_args()
    if arguments.command == "demo":
        demo.write(_plan(arguments), arguments.out)
    elif arguments.command == "site":
        arguments.out.write_text(site_toml.text(_DEFAULT))
    elif arguments.command == "feeds":
        feeds.write(arguments.out, arguments.portal)
    elif arguments.command == "past":
        past.write(arguments.out, seed=arguments.seed, pace=arguments.pace)
    elif arguments.command == "live":
        live.run(arguments.out, seed=arguments.seed, pace=arguments.pace)
    elif arguments.command == "incident":
        incident.write(arguments.out, seed=arguments.seed)
    elif arguments.command == "labelled":
        labelled_set.write(arguments.out, seed=arguments.seed, share=arguments.share)
    elif arguments.command == "experiments":
        examples.write(arguments.out, seed=arguments.seed)
    elif arguments.command == "rpctrace":
        constructed.write_rpctrace(
            arguments.out,
            lines=arguments.lines,
            nids=arguments.nids,
            odd_share=arguments.odd,
            seed=arguments.seed,
            version=Version(arguments.version),
        )
    else:
        constructed.write_job_stats(
            arguments.out, jobs=arguments.jobs, polls=arguments.polls, seed=arguments.seed
        )


def _plan(arguments: argparse.Namespace) -> Plan:
    start: int = arguments.start
    of_the_story = () if arguments.no_faults else faults.OF_THE_STORY
    return Plan(
        seed=arguments.seed,
        start=start,
        end=start + arguments.days * clock.DAY_S if arguments.days else arguments.until,
        rate=arguments.rate,
        campaign_hours=arguments.campaign_hours,
        poll_s=arguments.poll,
        node_count=arguments.nodes,
        knee_per_s=arguments.knee,
        trace=not arguments.no_trace,
        stops=arguments.stop,
        faults=Faults((*of_the_story, *arguments.fault)),
    )


def _parser(dates: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simulator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    whole = commands.add_parser(
        "demo", parents=[dates], help="all raw files of a year at the centre"
    )
    registration = commands.add_parser(
        "site", parents=[dates], help="the registration of the demo's centre alone"
    )
    agents = commands.add_parser("feeds", help="configuration of agents and portal for live logs")
    before = commands.add_parser("past", help="logs of today's centre in the hours before now")
    now = commands.add_parser("live", help="logs of today's centre, until Ctrl-C")
    both = commands.add_parser("incident", help="a harmful job and a busy one, by seed")
    labelled = commands.add_parser("labelled", help="a labelled set of harmful and harmless jobs")
    tests = commands.add_parser("experiments", help="files of experiments, one of each kind")
    trace = commands.add_parser("rpctrace", help="a constructed RPC trace, for benches")
    counters = commands.add_parser("job_stats", help="a constructed dump of an MDT, for benches")
    for command, out in (
        (whole, "a folder"),
        (registration, "a file"),
        (agents, "the folder of the logs"),
        (before, "a folder"),
        (now, "a folder"),
        (both, "a folder"),
        (tests, "a new folder"),
        (trace, "a file"),
        (counters, "a file"),
    ):
        if command not in {registration, agents}:
            command.add_argument("--seed", type=int, default=1)
        command.add_argument("--out", type=Path, required=True, help=out)
    _add_demo_arguments(whole)
    labelled.add_argument("out", type=Path, help="a folder")
    labelled.add_argument("--seed", type=int, default=1)
    labelled.add_argument("--share", type=float, default=1.0, help="of a whole set's subjects")
    agents.add_argument("--portal", required=True, help="its address")
    for command in (before, now):
        command.add_argument("--pace", type=int, default=1, help="multiple of the usual activity")
    trace.add_argument("--lines", type=int, required=True)
    trace.add_argument("--nids", type=int, default=300, help="number of clients")
    trace.add_argument("--odd", type=float, default=0.05, help="share of irregular lines")
    trace.add_argument("--version", choices=[v.value for v in Version], default="2.8")
    counters.add_argument("--jobs", type=int, required=True, help="number of entries")
    counters.add_argument("--polls", type=int, default=1, help="number of dumps")
    return parser


def _add_demo_arguments(whole: argparse.ArgumentParser) -> None:
    whole.add_argument(
        "--start", type=clock.moment, default=_DEFAULT.start, help="first day of the story"
    )
    length = whole.add_mutually_exclusive_group()
    length.add_argument("--until", type=clock.moment, default=_DEFAULT.end, help="2017-10-31")
    length.add_argument("--days", type=int, help="instead of --until")
    whole.add_argument(
        "--rate", type=float, default=_DEFAULT.rate, help="of submissions; 1: a busy centre"
    )
    whole.add_argument("--campaign-hours", type=float, default=_DEFAULT.campaign_hours)
    whole.add_argument(
        "--poll", type=int, default=_DEFAULT.poll_s, help="seconds between reads of the MDT"
    )
    whole.add_argument("--nodes", type=int, default=site.NODE_COUNT, help="of the machine")
    whole.add_argument(
        "--knee", type=float, default=_DEFAULT.knee_per_s, help="requests/s of the MDT"
    )
    whole.add_argument("--stop", action="store_true", help="running jobs are deleted at the end")
    whole.add_argument("--no-trace", action="store_true", help="no RPC traces of incidents")
    whole.add_argument("--no-faults", action="store_true", help="without the faults of the story")
    whole.add_argument(
        "--fault",
        type=faults.parse,
        action="append",
        default=[],
        help="one more: gap@2017-02-03T08:00/2h, lost:atlas2-oss1@2017-02-03/1d, "
        "reset:atlas2-mds1@2017-02-03T08:00, clock:atlas2-mds1@2017-02-03T08:00/6h,-90, "
        "upgrade:atlas2-mds1@2017-02-03T08:00,2.15.3",
    )
