import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("site", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Token",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=128)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("ingest", "send batches of one source"),
                            ("metrics", "read the portal's metrics"),
                        ],
                        max_length=8,
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to="site.source",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope", "ingest"), ("source__isnull", False)),
                            models.Q(
                                models.Q(("scope", "ingest"), _negated=True),
                                ("source__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="token_of_a_source",
                        violation_error_message="A token to send batches belongs to one source.",
                    )
                ],
            },
        ),
    ]
