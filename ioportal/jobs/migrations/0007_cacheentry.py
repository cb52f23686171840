from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0006_population"),
    ]

    operations = [
        migrations.CreateModel(
            name="CacheEntry",
            fields=[
                (
                    "cache_key",
                    models.CharField(max_length=255, primary_key=True, serialize=False),
                ),
                ("value", models.TextField()),
                ("expires", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(fields=["computed_at"], name="statistics_computed_at"),
        ),
    ]
