"""Staff pin baselines that replace computed ones."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from ioportal.load import baselines
from ioportal.load.models import Baseline, PinnedBaseline
from ioportal.site.models import Server, Service
from ioportal.telemetry.models import BaselinePeriod
from tests.logs import at

ENQUEUE, CLOSE = 101, 35
NOON = at("12:00")


@pytest.fixture
def mds(module_site):
    return Server.objects.get(name="mds1").pk


@pytest.fixture
def service(db):
    return Service.objects.get_or_create(name="mdt")[0].pk


@pytest.fixture
def computed(mds, service):
    """The computed baselines of mds1 at noon."""
    period = BaselinePeriod.objects.create(
        server_id=mds,
        start=NOON - baselines.PERIOD,
        end=NOON,
        traced=baselines.PERIOD,
        computed_at=timezone.now(),
    )
    for opcode, us in ((ENQUEUE, 100), (CLOSE, 50)):
        Baseline.objects.create(
            period=period, service_id=service, opcode=opcode, baseline_us=us, windows=5_000
        )


@pytest.fixture
def usual(mds):
    return lambda: dict(baselines.at_time([mds], NOON).select("opcode", "baseline_us").rows())


def test_pinned_baselines_take_precedence(computed, usual, as_staff):
    baseline = Baseline.objects.get(opcode=ENQUEUE)

    page = as_staff.post(
        "/admin/load/baseline/",
        {"action": "pin", "_selected_action": [baseline.pk]},
        follow=True,
    )

    assert "mds1" in page.content.decode()
    pin = PinnedBaseline.objects.get()
    assert (pin.pinned_by, pin.baseline_us) == (page.wsgi_request.user.get_username(), 100)
    assert usual() == {ENQUEUE: 100, CLOSE: 50}
    PinnedBaseline.objects.update(since=NOON - timedelta(hours=1), baseline_us=60)
    assert usual() == {ENQUEUE: 60, CLOSE: 50}
    PinnedBaseline.objects.update(until=NOON - timedelta(minutes=1))
    assert usual() == {ENQUEUE: 100, CLOSE: 50}


def test_staff_add_and_end_a_pinned_baseline(mds, service, as_staff):
    form = {"server": mds, "service": service, "opcode": ENQUEUE, "baseline_us": 80, "why": "new"}
    form |= {"since_0": "2017-07-05", "since_1": "10:00", "until_0": "", "until_1": ""}

    as_staff.post("/admin/load/pinnedbaseline/add/", form)

    pin = PinnedBaseline.objects.get()
    assert pin.pinned_by
    assert (pin.why, str(pin)) == ("new", "LDLM_ENQUEUE, mdt on mds1: 80 µs")
    until = {"until_0": "2017-07-05", "until_1": "11:00", "why": "new"}
    as_staff.post(f"/admin/load/pinnedbaseline/{pin.pk}/change/", until)
    pin.refresh_from_db()
    assert pin.until == at("11:00")
    assert LogEntry.objects.count() == 2


def test_users_cannot_pin_baselines(mds, service, as_alice):
    form = {"server": mds, "service": service, "opcode": ENQUEUE, "baseline_us": 80}

    assert as_alice.post("/admin/load/pinnedbaseline/add/", form).status_code == 302
    assert not PinnedBaseline.objects.exists()


def test_the_number_of_queries_does_not_grow_with_the_baselines(
    computed, as_staff, django_assert_max_num_queries
):
    with django_assert_max_num_queries(12):
        as_staff.get("/admin/load/baseline/")
