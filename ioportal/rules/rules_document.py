"""docs/rules.md, written by ``python -m ioportal.rules.rules_document > docs/rules.md``."""

from ioportal.core.units import Source, Unit
from ioportal.rules import RULES, examples
from ioportal.rules.rule import HARM_SHARE, Rule, Subject, Threshold

_HEAD = """# Rules

Rules evaluate jobs, users, hosts and filesystems as data arrives. Their findings become flags, and
flags are triaged in cases. Each rule has thresholds, which a site sets for its clusters,
filesystems and queues. A flag keeps the rule's version and the thresholds of its evaluation.

This page is generated from `ioportal/rules/`.

**Findings.** A rule flags a subject that exceeds *all* its thresholds. Unknown figures never exceed
a threshold. The first threshold belongs to the *measure*, which is charted.

**Flags.** A flag opens at the thresholds and ends below 80 % of each threshold, to prevent
flapping. Until then, further findings update it. A flag begins when its measure reached the
threshold, as far as the windows of the data show; pages also show when that was noticed. A finding
becomes *abuse* at a multiple of the measure's threshold once it has lasted five minutes, and at
twice that multiple immediately. For an ended job the whole run counts.

**Severity and harm.** A finding about load or impact is a *warning* only if others waited because
of its subject: at least a minute longer in total, over the run of a job, within a day for users,
projects and applications, within an hour for hosts. A subject with less than a tenth of the work of
a queue, or whose removal spares others less than a fifth of their waiting, is a bystander. Waiting
is measured from traces or estimated from the statistics of services (see
[metrics](metrics.md#impact)). Of the estimates, 60 % are within a factor of two: a warning needs
twice the estimated wait. Unknown harm is no accusation. Where neither was collected around the
highest load, the counted operations bound the waiting: from 20 % of the servers' registered
capacity on, within five minutes for jobs and hosts and within an hour for groups of jobs, others
probably waited, and the finding is a warning, never abuse. An assumed capacity bounds nothing:
without `capacity_per_s` of its metadata servers, a site without times gets notices only. All other
such findings are *notices*: advice to their owners, which needs no triage; their pages give the
reason. Wasted work alone (failed lookups) is always advice. While `impact` or `impact-of-many-jobs`
flags a subject, its other findings about load are notices too: they explain one problem, which is
triaged once. Otherwise the severity of a flag decreases only when the harm of a job becomes known,
or is recomputed, and is none.

**The narrowest subject, once.** Groups of jobs are applications (a user's jobs with one name),
users, campaigns (a project's jobs with one name) and projects. A part is a job or a narrower group
in it. A group is flagged for its impact only if no part explains half of that impact, nor do its
flagged parts together (without notices). A part explains as much of a group's impact as its own
impact in the same windows of 10 s. A group's flag ends when such a part is flagged later. Harmless
jobs of a flagged group get notices.

**Cases.** All flags of a rule on the jobs of one user, application name and filesystem are one
case; so are all flags of one user, host or filesystem. Its severity is the highest of its flags in
the week before its latest data. The application name is the job's name
without the numbers of single jobs. A case shows the total of the measure where it adds up over
jobs, otherwise its highest value. It is resolved when none of its findings applies, expires without
new findings for 30 days (hosts 30 minutes, filesystems two hours), and opens again when the problem
recurs: an expired one by new findings not older than these 30 days, whenever they are loaded.

**Evaluation times.** A job is evaluated whenever its data changes, and its user by the day up to
then. Hosts and filesystems are evaluated by their latest five minutes or hour. Data that arrives
later affects back-tests only. A flag keeps the highest value of its measure, with the other numbers
of that finding; an ended job keeps the numbers of its latest evaluation.

**Scope of thresholds.** A set of thresholds applies to the whole site, a filesystem, a cluster, a
queue, or a combination of filesystem and cluster or queue. A job belongs to its queue, its cluster,
and the filesystem with most operations at its peak. Each threshold comes from the narrowest part
that sets it: a queue precedes its cluster, and a cluster a filesystem. Otherwise the rule's default
applies. Hosts and filesystems have thresholds by filesystem only, and users for the whole site
only. New thresholds apply to running jobs and flags of unresolved cases immediately. A *back-test*
shows which ended jobs the new thresholds would have flagged, of how many users and in how many
cases.

**Data quality.** Findings about jobs are suppressed if the data that the rule reads is not good;
the flag states the reason. Most rules need a good grade of the job's counters. Rules that read
traces only need at most 5 % of the job's operations to be ambiguous or contradicted, and so does
estimated impact: lost operations only make it smaller. Measured impact needs at most 5 % to be
ambiguous. So a flag about impact may be good although the grade of the job's counters is poor; its
page shows both.

**Peaks.** A peak is the highest total of any five minutes so far. A poll interval counts if it lies
within the five minutes. A longer interval counts with its mean. A peak is therefore never too high,
and long poll intervals make it lower. With a peak of impact, the time of others relative to usual
and the share of the server's work are of its five minutes.

**Similar jobs.** Rules and job pages use the same similar jobs for usual values. See
[metrics](metrics.md#similar-jobs).

"""


def _number(value: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return f"{value:.0%}"
    return f"{value:,.0f} {unit.symbol}" if value == int(value) else f"{value:,g} {unit.symbol}"


def _row(name: str, threshold: Threshold) -> str:
    return f"| `{name}` | {threshold.title} | {_number(threshold.default, threshold.unit)} |\n"


def _section(rule: Rule) -> str:
    name = rule.abuse_share
    share = f", with an `{name}` of {HARM_SHARE:.0%} or more" if name else ""
    abuse = (
        f" Abuse from {rule.abuse_times:g} times the threshold of `{rule.measure}`{share}."
        if rule.abuse_times
        else ""
    )
    harm = ""
    if rule.needs_harm:
        is_impact = rule.source is Source.IMPACT
        unless_flagged = "" if is_impact else " and no rule about impact applies"
        harm = f" if others wait{unless_flagged}, otherwise notice"
    caveat = f"\n*{rule.caveat}*\n" if rule.caveat else ""
    rows = "".join(_row(name, threshold) for name, threshold in rule.thresholds.items())
    return (
        f"## {rule.title}\n\n`{rule.code}`, version {rule.version}, "
        f"{rule.severity.name.lower()}{harm}; source: {rule.source}.{abuse}\n\n"
        f"{rule.meaning}\n{caveat}\n"
        f"| threshold | title | default |\n|---|---|---|\n{rows}\n"
        f"Advice: {rule.advice}\n\n"
        f"Example (simulated), {rule.example.title}: “{examples.advice(rule)}”\n\n"
    )


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD]
    for kind in Subject:
        rules = [rule for rule in RULES if rule.subject is kind]
        if not rules:
            continue  # evaluated by the rules about users
        codes = ", ".join(f"`{rule.code}`" for rule in rules)
        *first, last = (f"{subject}s" for subject in rules[0].subjects)
        subjects = " and ".join([", ".join(first), last] if first else [last])
        parts += [f"# Rules for {subjects}: {codes}\n\n", *map(_section, rules)]
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  (its output is the page)
