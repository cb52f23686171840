"""Django's settings; site-specific values come from the environment (README, "Configuration")."""

import sys
from pathlib import Path

import structlog
from csp.constants import NONE, SELF, UNSAFE_INLINE
from django.contrib.messages import constants as message_levels

from ioportal.core import env, stages

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = env.secret("IOPORTAL_SECRET_KEY")
DEBUG = env.flag("IOPORTAL_DEBUG", default=False)
DEMO = env.flag("IOPORTAL_DEMO", default=False)  # the portal of `make demo`, which has a tour
ALLOWED_HOSTS = env.items("IOPORTAL_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
# Behind an HTTPS proxy: secure cookies, and HSTS.
HTTPS_ONLY = env.flag("IOPORTAL_HTTPS", default=False)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "csp",
    "django_filters",
    "django_htmx",
    "ioportal.core.throttling",
    "ioportal.telemetry",
    "ioportal.site",
    "ioportal.jobs",
    "ioportal.load",
    "ioportal.changes",
    "ioportal.ingest",
    "ioportal.findings",
    "ioportal.alerts",
    "ioportal.api",
    "ioportal.experiments",
    "ioportal.web",
    "ioportal.account",
    "ioportal.demo",
]

MIDDLEWARE = [
    "ioportal.web.common.responses.PrivateResponses",
    "ioportal.web.common.probes.Probes",
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "ioportal.api.responses.CompleteProblems",
    "ioportal.api.export_tokens.ExportTokens",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",  # public views: login_not_required
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "ioportal.web.common.outages.FullDisk",
    "ioportal.web.common.log_in.LogInAsPage",
    "ioportal.web.common.log_in.ThrottledLogIn",
    "ioportal.web.common.responses.VisibleCharacters",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]

ROOT_URLCONF = "ioportal.urls"
WSGI_APPLICATION = "ioportal.wsgi.application"

SITE_TEMPLATES = env.folders("IOPORTAL_TEMPLATES")  # they precede the portal's own
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [*SITE_TEMPLATES, BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "ioportal.web.context.site",
                "ioportal.demo.context.loading",
            ],
        },
    },
]

# Classes of `.notice` in the style sheet.
MESSAGE_TAGS = {message_levels.WARNING: "warn", message_levels.ERROR: "bad"}

DATABASES = {
    "default": {
        **env.database("DATABASE_URL"),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 3,
            # Detect a vanished host within a minute.
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 60_000,
            # Late data may change many rows of a compressed chunk; the default limit is 100,000.
            # Prepared statements (`ioportal.core.postgres.compiled`) have one plan for all values.
            "options": "-c timescaledb.max_tuples_decompressed_per_dml_transaction=0 "
            "-c plan_cache_mode=force_generic_plan "
            # A suspended process must not keep its locks, of a transaction or of a stage.
            "-c idle_in_transaction_session_timeout=5min -c idle_session_timeout=10min",
        },
    }
}
# For statements of pages and exports; batches of agents and stages have no limit.
STATEMENT_TIMEOUT = env.duration("IOPORTAL_STATEMENT_TIMEOUT", "30s")
# In the database: the cache is always consistent with the data.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "jobs_cacheentry",
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["ioportal.core.throttling.login_backend.ThrottledBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = env.text("IOPORTAL_TIME_ZONE", "UTC")  # of the pages; stored times are UTC

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "ioportal.web.common.finders.PlotlyFinder",
]
WHITENOISE_KEEP_ONLY_HASHED_FILES = True  # avoids compressing Plotly twice
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if not DEBUG
        else "django.contrib.staticfiles.storage.StaticFilesStorage",
    },
}

# No inline scripts and no external resources. Plotly sets style attributes on its SVG.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "style-src-attr": [UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-src": [SELF],  # the HTML of mails
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    },
}
SECURE_SSL_REDIRECT = HTTPS_ONLY
SESSION_COOKIE_SECURE = HTTPS_ONLY
CSRF_COOKIE_SECURE = HTTPS_ONLY
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS_ONLY else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS_ONLY else None
TRUSTED_PROXIES = env.networks("IOPORTAL_TRUSTED_PROXIES", "")
CSRF_TRUSTED_ORIGINS = env.items("IOPORTAL_TRUSTED_ORIGINS", "")
X_FRAME_OPTIONS = "DENY"

CELERY_BROKER_URL = env.text("IOPORTAL_BROKER_URL")
# A frozen broker still accepts connections, so every read and write has a limit.
BROKER_TIMEOUT_S = 1
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": BROKER_TIMEOUT_S,
    "socket_connect_timeout": BROKER_TIMEOUT_S,
    "socket_keepalive": True,
}
CELERY_TASK_ROUTES = stages.ROUTES
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # retry without limit
WAKE_UP_EXPIRES_S = 60  # without a worker, messages must not accumulate
_STAGE_INTERVAL = env.duration("IOPORTAL_STAGE_INTERVAL", "5s")
CELERY_BEAT_SCHEDULE = {
    task: {"task": task, "schedule": interval, "options": {"expires": WAKE_UP_EXPIRES_S}}
    for task, interval in stages.schedule(_STAGE_INTERVAL).items()
}

vars().update(env.mail("IOPORTAL_SMTP_URL", "smtp://localhost:25"))
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("IOPORTAL_MAIL_FROM", "ioportal@localhost")
EMAIL_TIMEOUT = env.duration("IOPORTAL_SMTP_TIMEOUT", "30s").total_seconds()  # of each step
CENTRE = env.text("IOPORTAL_CENTRE", "")  # signs mails, and names their sender; "": no signature
CENTRE_CONTACT = env.text("IOPORTAL_CENTRE_CONTACT", "")
MAIL_REPLY_TO = env.text("IOPORTAL_MAIL_REPLY_TO", "")  # such as the address of a ticket system
# Prints the mail address of a user whose name is its last argument (docs/operations.md, "Mails").
ADDRESS_COMMAND = env.command("IOPORTAL_ADDRESS_COMMAND")
BOUNCES_MAILBOX = env.mailbox("IOPORTAL_BOUNCES_URL")
# Certificates (PEM) of CAs for connections of the worker, in addition to the system's.
CA_FILE = env.file("IOPORTAL_CA_FILE")
# Networks that channels may call although they are not public.
CHANNEL_NETWORKS = env.networks("IOPORTAL_CHANNEL_NETWORKS", "")
PORTAL_URL = env.text("IOPORTAL_URL", "http://localhost:8000").rstrip("/")  # in mails

# Minimum interval between computations of the statistics of a running job, and of cached results.
STATISTICS_INTERVAL = env.duration("IOPORTAL_STATISTICS_INTERVAL", "60s")

# Two reads of a target further apart leave a gap: entries idle for longer than the target's
# job_cleanup_interval may have been dropped in between. A longer job_cleanup_interval raises it.
POLL_GAP = env.duration("IOPORTAL_POLL_GAP", "20m")

# Retention of each level (docs/operations.md, "Storage"); a level is retained at least as long as
# its source level. Job statistics are never dropped.
RAW_RETENTION = env.retention("IOPORTAL_RAW_RETENTION", "48h")
WINDOWS_RETENTION = env.retention("IOPORTAL_WINDOWS_RETENTION", "30d")
MINUTES_RETENTION = env.retention("IOPORTAL_MINUTES_RETENTION", "180d")
TOTALS_RETENTION = env.retention("IOPORTAL_TOTALS_RETENTION", "400d")
POLLS_RETENTION = env.retention("IOPORTAL_POLLS_RETENTION", "400d")
TEN_MINUTES_RETENTION = env.retention("IOPORTAL_TEN_MINUTES_RETENTION", "forever")
# Of single batches of agents; older ones of a stream and day are joined.
BATCHES_RETENTION = env.retention("IOPORTAL_BATCHES_RETENTION", "7d")
# Of texts of mails with their delivery logs, and of decisions about mails.
MAILS_RETENTION = env.retention("IOPORTAL_MAILS_RETENTION", "400d")
MAIL_DECISIONS_RETENTION = env.retention("IOPORTAL_MAIL_DECISIONS_RETENTION", "180d")
# If the licence of the database allows it.
COMPRESSED_AFTER = env.duration("IOPORTAL_COMPRESSED_AFTER", "3d")

# Per user and web process; a burst may have as many.
API_REQUESTS_PER_MINUTE = env.number("IOPORTAL_API_REQUESTS_PER_MINUTE", "6000")
# Addresses that may read through the API without a token, with the rights of one account.
API_NETWORKS = env.networks("IOPORTAL_API_NETWORKS", "")
API_NETWORKS_USER = env.text("IOPORTAL_API_NETWORKS_USER", "")

# Of the files of an upload together, as they are sent; and of their content.
UPLOAD_BYTES = env.size("IOPORTAL_UPLOAD_LIMIT", "2GB")
UPLOAD_CONTENT_BYTES = env.size("IOPORTAL_UPLOAD_CONTENT_LIMIT", "20GB")
ATTACHMENT_BYTES = env.size("IOPORTAL_ATTACHMENT_LIMIT", "16MB")
# Of attachments, and of uploads that are not loaded yet, together.
USER_QUOTA_BYTES = env.size("IOPORTAL_USER_QUOTA", "10GB")
PROJECT_QUOTA_BYTES = env.size("IOPORTAL_PROJECT_QUOTA", "50GB")

# Batches are refused while more dirty intervals of a kind are waiting for attribution.
PENDING_LIMIT = env.number("IOPORTAL_PENDING_LIMIT", "5000")
# Data is refused while less is free on the database's disk: PostgreSQL cannot start on a full disk.
DATABASE_FREE_BYTES = env.size("IOPORTAL_DATABASE_FREE", "4GB")
# Folders on the disks of the database; default: its data folder, if it is visible.
DATABASE_FOLDERS = env.folders("IOPORTAL_DATABASE_FOLDERS")

# Errors go to stderr with a traceback; Django's default mails them.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "filters": {"outages": {"()": "ioportal.core.logs.ShortOutages"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["outages"]}
    },
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO"},
        "django.request": {"level": "ERROR"},  # without responses 4xx
    },
}
# Events of the portal: a JSON object per line, so that external text cannot forge an event.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper("iso", key="at"),
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ],
    logger_factory=structlog.PrintLoggerFactory(sys.stderr),
)
