"""What became of operations, in words."""

import pytest

from ioportal.ingest import tasks


@pytest.fixture
def charge(db):
    """Run the charging stage, as a worker does."""
    return tasks.attribute_pending


@pytest.fixture
def charged(queries):
    """RPCs by what they are charged to: the kind, and the job's id or the name it goes by."""

    def read():
        return {
            (kind, who): int(rpcs)
            for kind, who, rpcs in queries(
                """
                SELECT (ARRAY['job', 'process', 'host', 'pending', 'ambiguous', 'unattributed'])
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
    """Opens of job_stats by what they are charged to, likewise."""

    def read():
        return {
            (kind, who): int(amount)
            for kind, who, amount in queries(
                """
                SELECT (ARRAY['job', 'process', 'host', 'pending', 'ambiguous', 'unattributed'])
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
