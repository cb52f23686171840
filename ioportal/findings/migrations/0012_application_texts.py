"""A colon between user and application name; subjects of back-tests begin with their kind."""

from typing import Any

from django.apps.registry import Apps
from django.db import migrations

_RENAME = """
UPDATE {table} SET subject = owner || '{new}' || substr(subject, length(owner) + 2)
WHERE subject_kind = 'application' AND starts_with(subject, owner || '{old}')
"""
_RULES = ("campaign", "impact-of-many-jobs")


def _rename_subjects(apps: Apps, _: Any) -> None:
    for test in apps.get_model("flags", "BackTest").objects.filter(rule__in=_RULES):
        for row in test.subjects:
            row["subject"] = _renamed(row["subject"], row["owner"])
        test.save(update_fields=["subjects"])


def _renamed(subject: str, owner: str) -> str:
    kind, _, text = subject.partition(" ")
    if kind == "application" and text.startswith(f"{owner} "):
        return f"{kind} {owner}:{text.removeprefix(owner)[1:]}"
    return subject if kind == "project" and text else f"user {subject}"


class Migration(migrations.Migration):
    dependencies = [("flags", "0012_moved_cases")]
    operations = [
        *(
            migrations.RunSQL(
                _RENAME.format(table=table, old=" ", new=":"),
                _RENAME.format(table=table, old=":", new=" "),
            )
            for table in ("flags_flag", "flags_case")
        ),
        migrations.RunPython(_rename_subjects, migrations.RunPython.noop),
    ]
