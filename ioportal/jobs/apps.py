"""Django app: batch jobs, their statistics, PanDA jobs."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Configuration of the app."""

    name = "ioportal.jobs"
