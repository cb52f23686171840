"""The command line: ``python -m simulator``; see `simulator.commands`."""

import argparse
from datetime import date

from simulator import clock


def main() -> None:
    """Date the story, then run the command."""
    dates = argparse.ArgumentParser(add_help=False)
    dates.add_argument(
        "--ends",
        type=date.fromisoformat,
        default=clock.STORY_ENDS,
        help=f"last day of the story ({clock.STORY_ENDS}); shifts all of its dates",
    )
    known, _ = dates.parse_known_args()
    clock.end_story(known.ends)
    from simulator import commands  # noqa: PLC0415  (imports the story, with its dates)

    commands.run(dates)


if __name__ == "__main__":
    main()
