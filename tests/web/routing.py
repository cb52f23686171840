"""All routes of the site, as Django resolves them."""

import re

from django.urls import URLPattern, get_resolver

# The admin's regular expressions, by their beginning.
_ADMIN_EXPRESSIONS = {"^(?P<app_label>": "auth/", "(?P<url>": "nothing/"}


def routes(patterns=None, prefix=""):
    """Yield each route with its name: `jobs/<int:pk>/`, `job`."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route, pattern.name
        else:
            yield from routes(pattern.url_patterns, route)


def addresses():
    """Yield an address for each route, with 1 for every parameter."""
    for route, _ in routes():
        address = route
        for start, example in _ADMIN_EXPRESSIONS.items():
            address = f"admin/{example}" if route.startswith(f"admin/{start}") else address
        yield "/" + re.sub(r"<[^>]+>", "1", address)
