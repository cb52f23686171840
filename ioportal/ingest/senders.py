"""The agent that sends the batches of a source: a second one, and refused batches.

Two agents on one source, for example with a copied configuration, read different hosts. The second
one waits until the first has been silent for a while, or until staff let it take over. Only time in
which the portal heard the second one counts: in an outage of the portal both are silent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from ioportal.ingest.manifest import Fenced, Refusal
from ioportal.ingest.models import Sender, Stream

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from ioportal.ingest.manifest import Manifest
    from ioportal.site.models import Source

log = structlog.get_logger()

_MISSED_POLLS: Final = 3  # tolerates a late or lost batch
_SHORTEST_SILENCE: Final = timedelta(minutes=5)
RETRY_S: Final = 60
_LONGEST_PAUSE: Final = timedelta(seconds=190)  # of a waiting agent between attempts
_RELEASE_LIFETIME: Final = timedelta(minutes=10)  # several attempts of a waiting agent
RECENT: Final = timedelta(minutes=10)  # a second agent that tried within this time still runs
_REASON_CHARACTERS: Final = 1_000


def patience(source: Source, shortest: timedelta = _SHORTEST_SILENCE) -> timedelta:
    """Return the time without a batch after which a source is silent.

    Args:
        source: with its interval between polls.
        shortest: for short intervals; by default until another agent may take over.
    """
    return max(_MISSED_POLLS * timedelta(seconds=source.poll_interval_s), shortest)


def admit(source: Source, manifest: Manifest, now: datetime) -> None:
    """Let the agent of a source deliver a batch.

    Raises:
        Refusal: staff discarded its stream.
        Fenced: another agent sends the batches of the source.
    """
    sender = Sender.objects.select_related("stream").filter(source=source).first()
    stream = sender.stream if sender else None
    is_same = (
        stream is not None
        and stream.stream == manifest.stream
        and manifest.agent.instance in {None, stream.instance}
    )
    if not is_same:
        _change(source, manifest, now)


def lock_stream(source: Source, manifest: Manifest) -> None:
    """Lock the stream of an admitted batch until the commit.

    Raises:
        Refusal: staff discarded it meanwhile.
    """
    stream = Stream.objects.select_for_update().get(source=source, stream=manifest.stream)
    if stream.discarded_at:
        raise _discarded(stream)


def _change(source: Source, manifest: Manifest, now: datetime) -> None:
    """Let another stream or agent take over the source, or fence it."""
    refusal: Refusal | None = None
    with transaction.atomic():
        Sender.objects.get_or_create(source=source)
        # The stream is read after the lock: another request may have changed it.
        sender = Sender.objects.select_for_update().get(source=source)
        own = Stream.objects.filter(source=source, stream=manifest.stream).first()
        if own and own.discarded_at:
            refusal = _discarded(own)
        elif (
            not sender.stream
            or sender.stream.is_of(manifest)
            or _may_take_over(sender, source, manifest, now)
        ):
            _take_over(sender, source, manifest, now)
        else:
            refusal = _fence(sender, source, manifest, now)
    if refusal:  # after the commit
        raise refusal


def _may_take_over(sender: Sender, source: Source, manifest: Manifest, now: datetime) -> bool:
    """Return whether staff just released the second agent, or the first was silent for long."""
    assert sender.stream  # noqa: S101  (the caller checks it)
    identity = _identity(manifest)
    if sender.released == identity and _is_released(sender, now):
        return True
    if sender.rival != identity or not sender.rival_since or not _is_heard(sender, now):
        return False
    return now - max(sender.stream.latest_at, sender.rival_since) > patience(source)


def _is_released(sender: Sender, now: datetime) -> bool:
    return sender.released_at is not None and now - sender.released_at <= _RELEASE_LIFETIME


def _is_heard(sender: Sender, now: datetime) -> bool:
    """Return whether the second agent went on trying until now."""
    return sender.rival_at is not None and now - sender.rival_at <= _LONGEST_PAUSE


def _take_over(sender: Sender, source: Source, manifest: Manifest, now: datetime) -> None:
    before = sender.stream
    facts: dict[str, object] = {"host": manifest.agent.host, "latest_at": now}
    if manifest.agent.instance:  # an older version does not make a known agent unknown
        facts["instance"] = manifest.agent.instance
    sender.stream, _ = Stream.objects.update_or_create(
        source=source,
        stream=manifest.stream,
        defaults=facts,
        create_defaults={**facts, "started_at": now},
    )
    if before and not before.is_of(manifest):
        sender.released = sender.released_at = None
        log.warning(
            "agent_took_over", source=source.name, host=manifest.agent.host, before=before.host
        )
    if sender.rival == _identity(manifest):
        sender.rival = sender.rival_since = sender.rival_at = None
        sender.rival_host = ""
    sender.save()


def _fence(sender: Sender, source: Source, manifest: Manifest, now: datetime) -> Refusal:
    assert sender.stream  # noqa: S101  (the caller checks it)
    rival = _identity(manifest)
    is_heard = _is_heard(sender, now)
    if sender.rival == rival or not is_heard:  # a third agent does not replace the second
        if not is_heard or (sender.rival_since and sender.stream.latest_at >= sender.rival_since):
            sender.rival_since = now
        sender.rival, sender.rival_host, sender.rival_at = rival, manifest.agent.host, now
        sender.save()
    holder, second = host_name(sender.stream.host), host_name(manifest.agent.host)
    return Fenced(
        f"Two agents send the batches of {source}: the agent on {holder} is accepted, the agent on "
        f"{second} must wait.",
        remedy=f"Stop one agent. The agent on {second} takes over once the other is silent, or "
        "when staff let it: Admin → Data → Streams.",
        retry=True,
    )


def _discarded(stream: Stream) -> Refusal:
    return Refusal(
        f"Staff discarded the stream {stream.stream} of {stream.source}.",
        code="discarded",
        remedy="Delete the state folder of the source on the agent's host: a new stream starts.",
    )


def release(source: Source, by: str, agent: UUID | None = None) -> str | None:
    """Let the second agent take over with its next attempt, within ten minutes.

    Args:
        source: of the batches.
        by: name in the log.
        agent: the one that must be the second agent; None: whichever is.

    Returns:
        The name of its host; None: it does not wait.
    """
    waiting = Sender.objects.filter(source=source, rival__isnull=False)
    if agent:
        waiting = waiting.filter(rival=agent)
    sender = waiting.first()
    if not sender:
        return None
    # The update names the agent: another may wait by now.
    facts = {"released": sender.rival, "released_at": timezone.now()}
    if not waiting.filter(rival=sender.rival).update(**facts):
        return None
    host = host_name(sender.rival_host)
    log.warning("fence_released", source=source.name, by=by, host=host, instance=str(sender.rival))
    return host


def accepted(source: Source, manifest: Manifest, now: datetime) -> None:
    """Note an accepted batch: the stream lives, and its refused batches may be resolved."""
    Stream.objects.filter(source=source, stream=manifest.stream).update(latest_at=now)
    if manifest.spool and manifest.spool.refused == 0:
        Sender.objects.filter(source=source, refused_stream=manifest.stream).update(
            refused_at=None, refused_stream=None, refusal=""
        )


def refused(source: Source, reason: str, manifest: Manifest | None, now: datetime) -> None:
    """Count a refused delivery for the health page and the metrics; "": without a reason."""
    Sender.objects.get_or_create(source=source)
    values: dict[str, object] = {"refusals": F("refusals") + 1}
    if reason:
        values |= {
            "refused_at": now,
            "refused_stream": manifest and manifest.stream,
            "refusal": reason[:_REASON_CHARACTERS],
        }
        if manifest:  # the accepted agent is not silent
            Stream.objects.filter(sender__source=source, stream=manifest.stream).update(
                latest_at=now
            )
    Sender.objects.filter(source=source).update(**values)


def host_name(host: str) -> str:
    """Return the host of an agent in words."""
    return host or "an unnamed host"


def _identity(manifest: Manifest) -> UUID:
    return manifest.agent.instance or manifest.stream
