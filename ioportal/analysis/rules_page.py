"""docs/rules.md, written by ``python -m ioportal.analysis.rules_page > docs/rules.md``."""

from ioportal.analysis.rules import RULES, examples
from ioportal.analysis.rules.rule import Limit, Rule, Subject

_HEAD = """# Rules

Rules judge jobs, users, hosts and filesystems as data arrive; what they find becomes flags. Each
has limits that a site sets for its clusters, filesystems and queues; a flag keeps the rule's
version and the limits that it was judged by.

This page is written from the records in `ioportal/analysis/rules/`; a test holds the two together.

**A finding** is over all of a rule's limits. A figure that is not known is over none. The first
limit is that of the rule's *measure*: the number that grows with the harm, and that a flag is
charted by.

**A flag** opens at the limits and stays open down to 80 % of each, so that it does not flap; while
it is not resolved, the same finding adds to it. It becomes *abuse* where the rule says so: at a
multiple of the limit, once it has lasted for five minutes; of a job that ended, its run has.

**When.** Jobs are judged by all that is known of them whenever that changes, and their users by the
day up to then. Hosts and filesystems are judged by their newest five minutes, or hour: what comes
later than that is told by a back-test only.

**Where limits hold.** A set of limits is for everything, for a filesystem, a cluster, a queue of a
cluster, or for what lies in a filesystem and one of these. A job is judged by those of its queue,
of its cluster, and of the filesystem where it did most within five minutes: each limit comes from
the narrowest part that names it, a queue before a cluster and a cluster before a filesystem; what
none names is the rule's own. Hosts and filesystems know limits of a filesystem only, users those
for everything. Running jobs and unresolved flags are judged by new limits at once; of jobs that
are over, a *back-test* tells whom the limits would have flagged.

**Good data only.** Rules about jobs withhold what they find where the quality of the job's data is
below good, and say why. Those that rest on traces alone ask that at most 5 % of the job's RPCs may
be another's: what a trace does not show blames nobody.

**Within five minutes**: the most that was done in any five minutes so far. Poll intervals count
where they lie in the five minutes as a whole; one that is longer counts with its mean. So the
figure is never more than what was done, and seldom polls make it less.

"""


def _number(value: float, unit: str) -> str:
    if unit == "share":
        return f"{value:.0%}"
    return f"{value:,.0f} {unit}" if value == int(value) else f"{value:,g} {unit}"


def _limit(name: str, limit: Limit) -> str:
    return f"| `{name}` | {limit.title} | {_number(limit.default, limit.unit)} |\n"


def _section(rule: Rule) -> str:
    abuse = (
        f" Abuse from {rule.abuse_times:g} times the limit of `{rule.measure}` on."
        if rule.abuse_times
        else ""
    )
    caveat = f"\n*{rule.caveat}*\n" if rule.caveat else ""
    limits = "".join(_limit(*one) for one in rule.limits.items())
    return (
        f"## {rule.title}\n\n`{rule.code}`, version {rule.version}, "
        f"{rule.severity.name.lower()}; source: {rule.source}.{abuse}\n\n{rule.meaning}\n{caveat}\n"
        f"| limit | what it is of | default |\n|---|---|---|\n{limits}\n"
        f"Advice: {rule.advice}\n\n"
        f"Example (simulated): {rule.example.who} is told: “{examples.advice(rule)}”\n\n"
    )


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for kind in Subject:
        of_kind = [rule for rule in RULES if rule.subject is kind]
        names = ", ".join(f"`{rule.code}`" for rule in of_kind)
        parts += [f"# Of a {kind}: {names}\n\n", *map(_section, of_kind)]
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  (its output is the page)
