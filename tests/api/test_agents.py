"""Real agents deliver to the portal; the stored data equals the content of the sources."""

import pytest

from tests.collectors.agent.conftest import Agent
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import Run, job_stats, md_stats, rpc, sacct, squeue

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def agent(tmp_path, live_server, token):
    agent = Agent(tmp_path, live_server)

    def read(source, form, **keys):
        secret = tmp_path / f"{source}.token"
        secret.touch(mode=0o600)
        secret.write_text(token(source))
        lines = [f'name = "{source}"', f'format = "{form}"', f'token_file = "{source}.token"']
        lines += ['every = "300ms"', *(f"{key} = {value}" for key, value in keys.items())]
        agent.configure("\n".join(["[[source]]", *lines, ""]))

    agent.read = read
    return agent


def test_data_from_agents_is_stored_and_reconciles(
    agent, tmp_path, queries, reconcile, attribute, eventually
):
    def cat(name):
        return f'["cat", "{tmp_path}/{name}"]'

    def put(name, text):
        (tmp_path / f"{name}.new").write_text(text)
        (tmp_path / f"{name}.new").rename(tmp_path / name)

    def total(query):
        [(value,)] = queries(query)
        return value

    log = tmp_path / "trace"
    log.write_text("".join(rpc(f"12:00:{n % 60:02}") + "\n" for n in range(300)))
    put("jobs", job_stats("lake-MDT0000", {"1": {"open": 5}}))
    put("osts", job_stats("lake-OST0000", {"1": {"punch": 2}}))
    put("totals", md_stats("lake-MDT0000", {"open": 50}))
    put("accounting", sacct(Run("1"), Run("2")))
    put("queue", squeue(Run("3", end=None)))
    put("services", (FIXTURES / "lustre_service_stats/get_param_2.12_a.txt").read_text())
    agent.read("mds1-trace", "rpctrace", file=f'"{log}"')
    agent.read("mds1-jobs", "job_stats", command=cat("jobs"))
    agent.read("oss1-jobs", "job_stats", command=cat("osts"))
    agent.read("mds1-totals", "md_stats", command=cat("totals"))
    agent.read("anvil-jobs", "sacct", command=cat("accounting"), zone='"UTC"')
    agent.read("anvil-queue", "squeue", command=cat("queue"), zone='"UTC"')
    agent.read("mds1-services", "mds_stats", command=cat("services"))
    deltas = "SELECT coalesce(sum({}), 0) FROM telemetry_jobdelta WHERE basis = 1"
    with agent.running():
        eventually(lambda: total("SELECT coalesce(sum(count), 0) FROM telemetry_rpcwindow") == 300)
        eventually(lambda: total("SELECT count(DISTINCT source_id) FROM ingest_batch") == 7)
        put("jobs", job_stats("lake-MDT0000", {"1": {"open": 12}}))
        put("osts", job_stats("lake-OST0000", {"1": {"punch": 6}}))
        put("totals", md_stats("lake-MDT0000", {"open": 57}))
        eventually(lambda: total(deltas.format("open")) == 7)
        eventually(lambda: total(deltas.format("punch")) == 4)
        eventually(lambda: total("SELECT sum(open) FROM telemetry_targetdelta") == 57)
    attribute()

    assert total("SELECT count(*) FROM jobs_job") == 3
    assert total("SELECT batch_id FROM jobs_job WHERE state = 'running'") == "3"
    samples = "SELECT max(samples) FROM telemetry_servicesnapshot s JOIN site_counter c"
    assert total(f"{samples} ON c.id = s.counter_id WHERE c.name = 'req_waittime'") == 57_267
    assert [e for e in agent.events() if e["level"] != "info"] == []
    assert reconcile()
