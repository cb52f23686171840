"""Attribution of operations, with names in place of ids, and loading of texts."""

from functools import partial

import pytest

from ioportal.ingest import tasks
from tests.loading import run_task


@pytest.fixture
def attribute(db):
    """Run the attribution stage like a worker."""
    return partial(run_task, tasks.attribute_pending)


@pytest.fixture
def attribution(queries):
    """Return the RPCs by kind and name of principal."""

    def read():
        return {
            (kind, name): int(rpcs)
            for kind, name, rpcs in queries(
                """
                SELECT (ARRAY['job', 'process', 'host', 'pending', 'ambiguous', 'unattributed',
                    'contradicted'])
                    [w.kind], coalesce(
                        (SELECT c.name || ' ' || j.batch_id FROM jobs_job j
                            JOIN site_cluster c ON c.id = j.cluster_id WHERE j.id = w.job_id),
                        (SELECT text FROM site_sourcejobid WHERE id = w.source_job_id),
                        (SELECT text FROM site_nid WHERE id = w.nid_id)
                    ), sum(count)
                FROM telemetry_attributedrpc w GROUP BY 1, 2
                """
            )
        }

    return read


@pytest.fixture
def opens(queries):
    """Return the opens of job_stats by kind and name of principal."""

    def read():
        return {
            (kind, name): int(amount)
            for kind, name, amount in queries(
                """
                SELECT (ARRAY['job', 'process', 'host', 'pending', 'ambiguous', 'unattributed',
                    'contradicted'])
                    [w.kind], coalesce(
                        (SELECT c.name || ' ' || j.batch_id FROM jobs_job j
                            JOIN site_cluster c ON c.id = j.cluster_id WHERE j.id = w.job_id),
                        (SELECT text FROM site_sourcejobid WHERE id = w.source_job_id),
                        ''
                    ), sum(open)
                FROM telemetry_iowindow w GROUP BY 1, 2
                """
            )
        }

    return read


@pytest.fixture
def load(site, logs, ingest):
    """Ingest a text as a file of a given name."""

    def run(form, name, text, **options):
        return ingest(form, logs(name, text), **options)

    return run


@pytest.fixture
def everything_reconciles(site, reconcile):
    """Reconcile at the end of the test."""
    yield
    assert reconcile()
