"""Names of principals, as far as a user may see them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.db.models import Q, prefetch_related_objects
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from ioportal.jobs.models import Job
from ioportal.load.impact.job_groups import Application, Campaign, project_of
from ioportal.load.impact.principal_windows import principal_name
from ioportal.site import process_names
from ioportal.site.models import Filesystem, Nid, SourceJobId
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from django.contrib.auth.models import User

    from ioportal.load.top_consumers import PrincipalKey

BYS = ("job", "user", "project")  # groupings of jobs
_NAMED = 40  # of each kind, more than any table or chart shows
# Hosts, including senders of job ids of no job, or of other jobs: additions to their names.
HOSTS = {Principal.HOST: "", Principal.PENDING: ", unknown job ids", Principal.CONTRADICTED: ""}
# Names with a blank cannot collide with users or projects.
_WITHOUT_OWNER = {
    Principal.PENDING: "pending job ids",
    Principal.AMBIGUOUS: "one of several jobs",
    Principal.UNATTRIBUTED: "load that no job explains",
    Principal.CONTRADICTED: "contradicted job ids",
}


@dataclass(frozen=True)
class Name:
    """The display name of a principal; several principals may share one."""

    text: str
    address: str = ""  # of its page
    nodes: int = 0
    user: str = ""  # who is responsible; "": unknown, or several


def named(ranked: Sequence[PrincipalKey], user: User, by: str) -> dict[PrincipalKey, Name]:
    """Return names of the busiest principals, as far as `user` may see them.

    Args:
        ranked: the principals, busiest first.
        user: staff see all; others see the jobs of their own and their projects.
        by: one of `BYS`.
    """
    keys = {
        kind: [key for principal, key in ranked if principal == kind]
        for kind in (Principal.JOB, Principal.CLAIMED, Principal.PROCESS, *HOSTS)
    }
    jobs = keys[Principal.JOB]
    if by != BYS[0]:
        names = _groups(jobs, user, by)
    else:
        names = _jobs(jobs[:_NAMED] if user.is_staff else jobs, user)
    claimed = keys[Principal.CLAIMED]
    for (_, key), name in _jobs(claimed[:_NAMED] if user.is_staff else claimed, user).items():
        text = f"{name.text}, by job id alone"  # the sender is unknown: no user is responsible
        names[int(Principal.CLAIMED), key] = replace(name, text=text, user="")
    processes = process_names_of(keys[Principal.PROCESS][:_NAMED])
    names |= {
        (Principal.PROCESS, key): replace(name, user="")  # no user is proven responsible
        for key, name in processes.items()
        if user.is_staff or name.user == user.get_username()
    }
    if not user.is_staff:
        return names
    for kind, addition in HOSTS.items():
        hosts = Nid.objects.filter(pk__in=keys[kind][:_NAMED])
        for pk, text in hosts.values_list("pk", Coalesce("node__name", "text")):
            names[kind, pk] = Name(f"host {text}{addition}", nodes=1)
    return names | {(kind, 0): Name(text) for kind, text in _WITHOUT_OWNER.items()}


def process_names_of(keys: Collection[int]) -> dict[int, Name]:
    """Return the names of processes and of all processes of a user id, with the registered user.

    The processes have chosen the names, so the text names no user.

    Args:
        keys: source job ids, and keys of user ids (`process_names.key_of_uid`).
    """
    by_key = {key: uid for key in keys if (uid := process_names.uid_of_key(key)) is not None}
    single = [key for key in keys if key not in by_key]
    texts = dict(SourceJobId.objects.filter(pk__in=single).values_list("pk", "text"))
    uids = by_key | {
        key: uid for key, text in texts.items() if (uid := process_names.uid_of(text)) is not None
    }
    users = process_names.users_by_uid(uids.values())
    names = {}
    for key in (*texts, *by_key):
        owner = users.get(uids[key], "") if key in uids else ""
        if key in by_key:
            text = f"processes named *.{by_key[key]} (user not proven)"
        else:
            text = f"process {texts[key]}" + (" (user not proven)" if owner else "")
        names[key] = Name(text, user=owner)
    return names


def host_subjects(texts: Collection[str]) -> dict[str, str]:
    """Return the subjects of flags on processes and hosts with a name: its name.

    A process is also a subject together with all others of its user id.

    Args:
        texts: exact names, such as ``du.4711``, a node or a NID; names of jobs are ignored.
    """
    stored = SourceJobId.objects.filter(
        filesystem__in=Filesystem.objects.all(),  # with it, the index is used
        text__in=texts,
        batch_id="",
    )
    keys = dict(stored.values_list("pk", "text"))
    uids = {text: uid for text in keys.values() if (uid := process_names.uid_of(text)) is not None}
    keys |= {process_names.key_of_uid(uid): text for text, uid in uids.items()}
    processes = {principal_name((Principal.PROCESS, key)): text for key, text in keys.items()}
    nids = Nid.objects.filter(Q(node__name__in=texts) | Q(text__in=texts))
    hosts = nids.values_list("pk", Coalesce("node__name", "text"))
    return processes | {principal_name((kind, key)): text for key, text in hosts for kind in HOSTS}


def job_group_name(kind: str, text: str) -> Name:
    """Return the name of a group of jobs; `kind` and `text` as in `load.impact.job_groups`."""
    if kind in {"user", "project"}:
        return Name(text, reverse(kind, args=[text]), user=text if kind == "user" else "")
    address = f"{reverse('job_list')}?{urlencode(job_group_filters(kind, text))}"
    if kind == "campaign":
        project, name = Campaign.from_text(text)
        return Name(f"{name} of project {project}", address)
    user, name = Application.from_text(text)
    return Name(f"{name} of {user}", address, user=user)


def job_group_names(groups: Iterable[tuple[str, str]], user: User) -> dict[tuple[str, str], Name]:
    """Return the names of those groups of jobs, by kind and text, of which `user` sees all jobs."""
    return {
        group: job_group_name(*group)
        for group in groups
        if user.is_staff or _sees_all_jobs(user, *group)
    }


def _sees_all_jobs(user: User, kind: str, text: str) -> bool:
    if kind in {"project", "campaign"}:
        prefetch_related_objects([user], "groups")
        return project_of(kind, text) in {group.name for group in user.groups.all()}
    owner = Application.from_text(text).user if kind == "application" else text
    return owner == user.get_username()


def job_group_filters(kind: str, text: str) -> dict[str, str]:
    """Return the filters of the job list for a group of jobs."""
    if kind in {"user", "project"}:
        return {kind: text}
    is_campaign = kind == "campaign"
    owner, name = (Campaign if is_campaign else Application).from_text(text)
    return {"project" if is_campaign else "user": owner, "name": name.partition("*")[0]}


def _jobs(keys: Iterable[int], user: User) -> dict[PrincipalKey, Name]:
    """Name jobs by id and owner."""
    fields = ("batch_id", "array_index", "owner", "node_count", "started_at")
    jobs = Job.objects.visible_to(user).filter(pk__in=keys).only(*fields)
    texts = {job: f"{job.display_id} {job.owner or '(unknown user)'}" for job in jobs}
    counts = Counter(texts.values())
    for job, text in texts.items():
        if counts[text] > 1:  # ids repeat
            texts[job] = f"{text} {timezone.localtime(job.started_at):%Y-%m-%d %H:%M:%S}"
    return {
        (int(Principal.JOB), job.pk): Name(
            text, reverse("job", args=[job.pk]), job.node_count, job.owner
        )
        for job, text in texts.items()
    }


def _groups(keys: Iterable[int], user: User, by: str) -> dict[PrincipalKey, Name]:
    """Name jobs by user or project, with the nodes of all its jobs."""
    field = "owner" if by == "user" else "project"
    jobs: Any = Job.objects.visible_to(user).filter(pk__in=keys)
    rows = list(jobs.values_list("pk", field, "node_count"))
    nodes: dict[str, int] = defaultdict(int)
    for _, group, count in rows:
        nodes[group] += count
    names = {
        group: Name(group, reverse(by, args=[group]), count, group if by == "user" else "")
        if group
        else Name(f"jobs without {by}", nodes=count)
        for group, count in nodes.items()
    }
    return {(int(Principal.JOB), pk): names[group] for pk, group, _ in rows}
