"""The app of experiments."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    """The app."""

    name = "ioportal.experiments"

    def ready(self) -> None:
        """Let ingest load the files of experiments."""
        from ioportal.experiments import loaders  # noqa: PLC0415  (models are loaded now)

        loaders.register()
