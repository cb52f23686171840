"""Episodes of impact in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.core.formatting import times as formatted_times

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.load.episodes import Episode


def times(episode: Episode) -> str:
    """Return the mean over an episode and its worst 10 s, as multiples of the usual time."""
    if episode.mean_times is None or episode.worst_times is None:
        return "longer than usual"
    mean, highest = (formatted_times(each) for each in (episode.mean_times, episode.worst_times))
    return (
        f"{mean} times as long as usual (mean over the episode; {highest} times in the worst 10 s)"
    )


def interval(start: datetime, end: datetime) -> str:
    """Return a start and an end in the current time zone."""
    start, end = timezone.localtime(start), timezone.localtime(end)
    date = "" if start.date() == end.date() else "%Y-%m-%d "
    return f"{start:%Y-%m-%d %H:%M:%S} to {end:{date}%H:%M:%S %Z}"
