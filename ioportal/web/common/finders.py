"""Static files of Python packages that are not Django apps."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import FileSystemStorage

if TYPE_CHECKING:
    from collections.abc import Iterable

_FILE = "plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Plotly's JavaScript from its Python distribution.

    The package is not imported: that would take longer than serving a page.
    """

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        spec = find_spec("plotly")
        if spec is None or spec.origin is None:
            raise ImproperlyConfigured("The Python package 'plotly' is not installed.")
        folder = Path(spec.origin).parent / "package_data"
        self._storage = FileSystemStorage(location=folder)

    def check(self, **_kwargs: Any) -> list[Any]:
        """Return no errors: there are no options."""
        return []

    def find(  # type: ignore[override]  # the stubs want overloads
        self,
        path: str,
        find_all: bool = False,  # noqa: FBT001, FBT002  (Django's signature)
    ) -> str | list[str]:
        """Return the path of the file, or an empty list."""
        if path != _FILE:
            return []
        return [self._storage.path(_FILE)] if find_all else self._storage.path(_FILE)

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[Any]:  # noqa: ARG002  (Django's)
        """Yield the file for collectstatic."""
        yield _FILE, self._storage
