# One image for web, workers and beat; docker-compose.yml has their commands.

FROM python:3.11-slim-bookworm AS packages
COPY requirements/installer.txt requirements/base.txt /requirements/
RUN python -m venv /opt/venv \
    && for lock in installer base; do \
        /opt/venv/bin/pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
            --requirement "/requirements/$lock.txt" || exit 1; \
    done

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin ioportal
COPY --from=packages /opt/venv /opt/venv
# Web processes share their request counts in this folder, which must be empty at each start.
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PROMETHEUS_MULTIPROC_DIR=/run/ioportal
WORKDIR /srv/ioportal
COPY manage.py ./
COPY collectors collectors
COPY ioportal ioportal
COPY templates templates
COPY static static
# Static files need the settings, and these need three values; no service is used.
RUN DATABASE_URL=postgresql:///none IOPORTAL_BROKER_URL=memory:// IOPORTAL_SECRET_KEY=none \
    python manage.py collectstatic --noinput --verbosity 0
USER ioportal
EXPOSE 8000
CMD ["granian", "--interface", "asginl", "--host", "0.0.0.0", "--port", "8000", \
     "--workers", "2", "--respawn-failed-workers", "--http", "1", "--no-ws", "--http1-header-read-timeout", "10000", \
     "--backlog", "2048", "--backpressure", "4096", "ioportal.asgi:application"]
