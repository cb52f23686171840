"""Stored figures that others' requests are a part of get two significant digits."""

from django.db import migrations

# Not on the other side of its threshold: then it becomes the threshold.
_ROUND = """
CREATE OR REPLACE FUNCTION pg_temp.two_digits(value float8, threshold float8) RETURNS float8 AS $$
    SELECT CASE WHEN threshold BETWEEN rounded AND value THEN threshold ELSE rounded END
    FROM (SELECT CASE WHEN value = 0 THEN 0 ELSE
        round(value::numeric, 1 - floor(log(abs(value::numeric)))::int)
    END::float8) AS _ (rounded)
$$ LANGUAGE sql IMMUTABLE;

UPDATE findings_flag f SET numbers = (
    SELECT jsonb_object_agg(key, CASE
        WHEN jsonb_typeof(number) = 'number' AND key IN (
            'impact_s', 'peak_impact_s', 'parts_impact_s', 'impact_share', 'impact_times',
            'lock_ratio', 'server_share', 'operations_share', 'process_operations_share'
        ) THEN to_jsonb(pg_temp.two_digits(number::float8, (f.thresholds -> key)::float8))
        ELSE number
    END) FROM jsonb_each(f.numbers) AS _ (key, number)
) WHERE numbers <> '{}';

UPDATE findings_flag SET value = pg_temp.two_digits(value, (thresholds -> 'peak_impact_s')::float8)
WHERE rule IN ('impact', 'impact-of-many-jobs');

UPDATE findings_flagevent e SET
    value = pg_temp.two_digits(e.value, (f.thresholds -> 'peak_impact_s')::float8)
FROM findings_flag f WHERE f.id = e.flag_id AND f.rule IN ('impact', 'impact-of-many-jobs');

UPDATE findings_flagevent SET text = regexp_replace(
    text, ': others lost [0-9,]+ s by it\\.$', ': others waited for it.'
) WHERE kind = 'escalated' AND text LIKE '%: others lost %';
"""


class Migration(migrations.Migration):
    dependencies = [("findings", "0001_initial")]

    operations = [migrations.RunSQL(_ROUND, migrations.RunSQL.noop)]
