"""Measure the speed of reading and loading: ``python -m bench [BENCH...] [--quick]``."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ioportal.settings")
# Loading sends no wake-ups; benches of a complete portal use this broker.
os.environ["BENCH_BROKER_URL"] = os.environ["IOPORTAL_BROKER_URL"]
os.environ["IOPORTAL_BROKER_URL"] = "memory://"
django.setup()

from bench.run import main  # noqa: E402  (imports models, which need the set-up above)

main()
