"""The steps of docs/metrics.md, "One queue by hand", on the export of a queue."""

TOLERANCE = 0.05


_SENDERS = ["blocking", "group", "rest", "others"]


def extra_wait_s(rows):
    """Return the extra wait of others because of a group."""
    with_s, without_s = (_waiting_s(rows, _SENDERS[n:]) for n in (1, 2))
    return (with_s - without_s) * scale(rows)


def scale(rows):
    """Return measured waiting / replayed waiting of others."""
    measured_s = sum(row["measured_wait_s"] for row in rows[_first(rows) :])
    return min(measured_s / _waiting_s(rows, _SENDERS), 2)


def _first(rows):
    return next(n for n, row in enumerate(rows) if row["group_work_s"] > 0)


def _waiting_s(rows, present):
    return sum(waits(rows, present)[_first(rows) :])


def waits(rows, present):
    """Return how long others' requests wait that are served in each second."""
    request_s = sum(row["others_work_s"] for row in rows) / sum(
        row["others_requests"] for row in rows
    )
    found, left, left_of_others = [], 0, 0
    for row in rows:
        pending = left + sum(row[f"{sender}_work_s"] for sender in present)
        of_others = left_of_others + row["others_work_s"]
        served = min(1, row["capacity_s"] / pending) if pending else 1
        before, left = left, pending * (1 - served)
        left_of_others = of_others * (1 - served)
        wait_s = (before + left) / 2 / row["capacity_s"]
        found.append(of_others * served / request_s * wait_s)
    return found
