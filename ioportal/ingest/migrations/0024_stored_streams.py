"""Streams of the stored batches; the latest one of each source is its sender's."""

from django.db import migrations

_STREAMS = """
INSERT INTO ingest_stream (
    source_id, stream, host, started_at, latest_at, discarded_by, discard_reason
)
SELECT b.source_id, b.stream, '', min(g.loaded_at), max(g.loaded_at), '', ''
FROM ingest_batch b JOIN ingest_segment g ON g.id = b.segment_id
GROUP BY 1, 2
"""
_SENDERS = """
INSERT INTO ingest_sender (source_id, stream_id, rival_host, is_released, refusals, refusal)
SELECT DISTINCT ON (source_id) source_id, id, '', false, 0, ''
FROM ingest_stream
ORDER BY source_id, latest_at DESC
"""
_HOSTS = """
UPDATE ingest_stream t SET host = s.agent_host
FROM ingest_sender r JOIN site_source s ON s.id = r.source_id
WHERE r.stream_id = t.id
"""


class Migration(migrations.Migration):
    """Data only."""

    dependencies = [("ingest", "0023_streams")]

    operations = [
        migrations.RunSQL([_STREAMS, _SENDERS, _HOSTS], migrations.RunSQL.noop),
    ]
