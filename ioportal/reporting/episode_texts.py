"""Episodes of impact in words: the same figures and names on pages, in mails and in tickets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from ioportal.flags.episodes import episodes_of
from ioportal.reporting.formatting import percent, significant

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.activity.episodes import Episode
    from ioportal.flags.models import Flag

_MIN_S = 1  # impact below is not mentioned


def worst(flag: Flag) -> Episode | None:
    """Return the episode of a flag with the largest impact; None: it is not known."""
    return next((each for each in episodes_of(flag) if each.impact_s >= _MIN_S), None)


def of_flag(flag: Flag) -> str:
    """Return a flag's worst episode in words; "": it is not known."""
    episode = worst(flag)
    return in_words(episode) if episode else ""


def in_words(episode: Episode) -> str:
    """Return an episode with its interval, its waiting and its two ratios."""
    estimated = " (estimated)" if episode.is_estimated else ""
    return (
        f"{interval(episode.start, episode.end)}: others waited "
        f"{significant(episode.impact_s)} s longer in total{estimated}. "
        f"Their requests took {times(episode)}. Meanwhile "
        f"{percent(episode.share, 0)}% of the server's work was from this cause."
    )


def times(episode: Episode) -> str:
    """Return the mean over an episode and its worst 10 s, as multiples of the usual time."""
    if episode.mean_times is None or episode.worst_times is None:
        return "longer than usual"
    mean, highest = (significant(each) for each in (episode.mean_times, episode.worst_times))
    return (
        f"{mean} times as long as usual (mean over the episode; {highest} times in the worst 10 s)"
    )


def interval(start: datetime, end: datetime) -> str:
    """Return a start and an end in the current time zone."""
    start, end = timezone.localtime(start), timezone.localtime(end)
    date = "" if start.date() == end.date() else "%Y-%m-%d "
    return f"{start:%Y-%m-%d %H:%M:%S} to {end:{date}%H:%M:%S %Z}"
