"""Source text to typed tables; knows nothing of Django, the database or the site."""

VERSION = "0.1.0"
