"""Windows across reads that arrived later are derived again: they counted operations twice."""

from django.db import migrations

MARK = """
INSERT INTO ingest_dirtyreads (target_id, start, "end", has_rows)
SELECT m.target_id, w.start, w."end", true
FROM (
    SELECT DISTINCT segment_id, start, "end" FROM telemetry_iowindow
    WHERE start < "end" AND segment_id NOT IN (SELECT segment_id FROM ingest_batch)
) w
JOIN ingest_segment_targets m USING (segment_id)
WHERE EXISTS (
    SELECT FROM telemetry_coverage c
    WHERE c.source = 'job_stats' AND c.source_id = m.target_id AND c."end" = c.start
        AND c.start > w.start AND c.start < w."end"
)
"""


class Migration(migrations.Migration):
    dependencies = [("ingest", "0003_dirtyexports_filesystem"), ("telemetry", "0005_table_size")]

    operations = [migrations.RunSQL(MARK, migrations.RunSQL.noop)]
