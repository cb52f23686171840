"""Indexes of contradicted operations, whose rows have both a job id and a NID."""

from django.db import migrations

_BY_PRINCIPAL = (
    "attributedrpc", "rpcminute", "rpctenminutes", "loadwindow", "loadminute", "loadtenminutes",
)  # fmt: skip
_ROWS = "source_job_id <> 0 AND kind <> 2"  # (processes are found by their NID)


def _of_job_ids(name: str, rows: str) -> str:
    return (
        f"DROP INDEX {name}_source_job;"
        f"CREATE INDEX {name}_source_job ON telemetry_{name} (source_job_id, start) WHERE {rows};"
    )


def _contradicted(name: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"CREATE INDEX {name}_contradicted ON telemetry_{name} (start) WHERE kind = 7",
        reverse_sql=f"DROP INDEX {name}_contradicted",
    )


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0002_initial")]
    operations = [
        *(
            migrations.RunSQL(
                _of_job_ids(name, _ROWS),
                reverse_sql=_of_job_ids(name, "source_job_id <> 0 AND nid_id = 0"),
            )
            for name in _BY_PRINCIPAL
        ),
        _contradicted("attributedrpc"),
        _contradicted("iowindow"),
    ]
