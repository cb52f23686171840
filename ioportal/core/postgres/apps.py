"""The app of the database backend: it checks that the database has what the models declare."""

from django.apps import AppConfig
from django.core import checks

from ioportal.core.postgres import drift, roles


class PostgresConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.core.postgres"
    label = "database"  # "postgres" is Django's

    def ready(self) -> None:
        """Register the checks, for `migrate` and `check --database`."""
        checks.register(drift.check, checks.Tags.database)
        checks.register(roles.check, checks.Tags.database)
