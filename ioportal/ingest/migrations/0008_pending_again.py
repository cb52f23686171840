"""Whether pending intervals were derived before: only those that were not have no figures yet."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ingest", "0007_health")]

    operations = [
        migrations.AddField(model_name=name, name="again", field=models.BooleanField(default=False))
        for name in ("toucheddeltas", "touchedjob", "touchedreads", "touchedtrace")
    ]
