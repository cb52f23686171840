"""Times of day and the target of polls in tests of statistics."""

from datetime import timedelta

from tests.logs import at

MDT = "lake-MDT0000"
HOUR = 3_600


def every_ten_minutes(first="11:50", last="13:10"):
    clock = at(first)
    while clock <= at(last):
        yield f"{clock:%H:%M}"
        clock += timedelta(minutes=10)
