import django.contrib.postgres.indexes
from django.contrib.postgres.operations import BtreeGistExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0011_request_windows"),
    ]

    operations = [
        BtreeGistExtension(),
        migrations.AddIndex(
            model_name="coverage",
            index=django.contrib.postgres.indexes.GistIndex(
                models.F("source_id"),
                models.Func("start", "end", models.Value("[]"), function="tstzrange"),
                name="coverage_during",
            ),
        ),
    ]
