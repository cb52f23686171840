"""The RPC report: who sent how many RPCs of which kind, and how long they took."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Least, mean and greatest of some times in microseconds; None where nothing was timed."""

    min_us: int
    mean_us: float
    max_us: int


@dataclass(frozen=True)
class RpcRow:
    """One kind of RPC, or all of them."""

    opcode: str  # "LDLM_ENQUEUE"; "all" for the overall row
    count: int
    per_second: float | None  # None: no traced time
    service: Times | None
    queue: Times | None


@dataclass(frozen=True)
class RpcReport:
    """RPCs of one principal in one range.

    `rows` come by falling count, then by name; `overall` adds them up. `covered_s` is the traced
    time inside the range, which rates divide by; a trace that begins and ends in the range counts
    with its own extent, first record to last.
    """

    title: str
    simulated: bool
    covered_s: float
    nodes_seen: int | None  # None: which nodes sent them is not known any more
    nodes_held: int | None  # None: the principal is not a set of nodes
    overall: RpcRow
    rows: tuple[RpcRow, ...]

    def text(self) -> str:
        """Return the report as the block that administrators paste into tickets."""
        lines = [
            f"{self.title} (simulated)" if self.simulated else self.title,
            f"      {self.overall.count} RPCs{self._nodes()}",
            f"        {_rate(self.overall)}",
        ]
        for row in self.rows:
            lines.append(f"          {row.count} {row.opcode} RPCs    {_rate(row)}")
            lines.append(f"                {_times(row.service)}")
        lines += ["          Overall times", f"                {_times(self.overall.service)}"]
        return "\n".join(lines)

    def _nodes(self) -> str:
        if self.nodes_seen is None:
            return ""
        held = "" if self.nodes_held is None else f" of {self.nodes_held}"
        return f" from {self.nodes_seen}{held} nodes"


def _rate(row: RpcRow) -> str:
    return (
        "rate unknown: no traced time"
        if row.per_second is None
        else f"~{row.per_second:.2f} per sec"
    )


def _times(times: Times | None) -> str:
    if times is None:
        return "not timed"
    return f"pmin {times.min_us}us pavg {round(times.mean_us)}us pmax {times.max_us}us"
