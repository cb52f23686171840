"""Times of operations, which servers count since Lustre 2.14. Null: unknown, or no operations."""

from django.db import migrations

_OPERATIONS = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr",
    "getxattr", "setxattr", "statfs", "sync", "migrate", "readpage", "read", "write", "punch",
    "fallocate", "destroy", "create", "get_info", "set_info", "quotactl", "prealloc",
)  # fmt: skip
_TABLES = (
    "jobsnapshot", "targetsnapshot", "jobdelta", "targetdelta", "iowindow", "iotenminutes",
)  # fmt: skip


def _each_column(table: str, form: str) -> str:
    """Return one statement per column, as tables with compressed chunks require."""
    return "".join(
        f"ALTER TABLE telemetry_{table} {form.format(f'{name}_us')};" for name in _OPERATIONS
    )


class Migration(migrations.Migration):
    dependencies = [("telemetry", "0003_contradicted")]
    operations = [
        migrations.RunSQL(
            _each_column(table, "ADD COLUMN {} bigint"),
            reverse_sql=_each_column(table, "DROP COLUMN {}"),
        )
        for table in _TABLES
    ]
