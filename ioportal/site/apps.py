"""The app of clusters, filesystems, servers and sources."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """The app."""

    name = "ioportal.site"
