"""The RPC report: counts, rates and times of a principal's RPCs by kind."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Minimum, mean and maximum of times in microseconds."""

    min_us: int
    mean_us: float
    max_us: int


@dataclass(frozen=True)
class RpcRow:
    """One kind of RPC, or the total."""

    opcode: str  # "LDLM_ENQUEUE"; "all" for the overall row
    count: int
    per_second: float | None  # None: no traced time
    service: Times | None  # None: no timed RPCs
    queue: Times | None


@dataclass(frozen=True)
class RpcReport:
    """RPCs of one principal in one range.

    `rows` are sorted by descending count, then by name; `overall` is their total. `covered_s` is
    the traced time inside the range, the divisor of rates. A trace that begins and ends in the
    range counts from its first to its last record.
    """

    title: str
    simulated: bool
    covered_s: float
    nodes_seen: int | None  # None: the nodes are no longer stored
    nodes_held: int | None  # None: the principal is not a set of nodes
    overall: RpcRow
    rows: tuple[RpcRow, ...]

    def text(self) -> str:
        """Return the report as a block of text for tickets."""
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
        total = "" if self.nodes_held is None else f" of {self.nodes_held}"
        return f" from {self.nodes_seen}{total} nodes"


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
