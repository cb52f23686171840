"""agent.toml: what it says is checked before anything starts."""

from pathlib import Path

import pytest

from collectors.agent import config
from collectors.agent.config import Misconfigured

DEPLOY = Path(__file__).parents[3] / "deploy"
TOP = '[portal]\nurl = "https://io.example.org"\n[agent]\nstate = "/var/lib/agent"\n'
SOURCE = '[[source]]\nname = "mds1"\nformat = "rpctrace"\ntoken_file = "t"\nfile = "/var/log/x"\n'


def load(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return config.load(path)


def test_a_minimal_configuration_has_sensible_defaults(tmp_path):
    loaded = load(tmp_path, TOP + SOURCE)
    [source] = loaded.sources

    assert loaded.spool_bytes == 1_000_000_000
    assert (source.kind, source.path, source.every_s) == ("file", "/var/log/x", 5)
    assert source.token_file == tmp_path / "t"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "portal is missing", id="nothing"),
        pytest.param("[portal", "agent.toml", id="no TOML"),
        pytest.param(TOP, "source is missing", id="no source"),
        pytest.param(
            (TOP + SOURCE).replace("https://io", "http://io"), "begins with https", id="no TLS"
        ),
        pytest.param(TOP + SOURCE + SOURCE, "a name of its own", id="a name twice"),
        pytest.param(TOP + SOURCE + "evrey = '5s'\n", "'evrey'", id="a misspelt key"),
        pytest.param(TOP + SOURCE + "every = '5'\n", "a time such as", id="no unit"),
        pytest.param(TOP + SOURCE + "pipe = '/p'\n", "one of file, pipe", id="two kinds"),
        pytest.param(
            TOP + SOURCE.replace("/var/log/x", "x"), "an absolute path", id="a relative path"
        ),
        pytest.param(TOP + SOURCE.replace("mds1", "../mds1"), "letters, digits", id="a bad name"),
        pytest.param(TOP + SOURCE.replace("rpctrace", "sacct"), "one of rpctrace, pbs", id="kind"),
        pytest.param(TOP + SOURCE.replace("rpctrace", "pbs"), "zone is missing", id="no zone"),
        pytest.param(
            TOP + SOURCE.replace("rpctrace", "pbs") + "zone = 'Mars'\n", "a time zone", id="Mars"
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(tmp_path, text, reason):
    with pytest.raises(Misconfigured, match=reason):
        load(tmp_path, text)


def test_a_configuration_that_others_can_change_is_refused(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(TOP + SOURCE)
    path.chmod(0o646)

    with pytest.raises(Misconfigured, match=f"can write to it: chmod 644 {path}"):
        config.load(path)


@pytest.mark.parametrize("sample", sorted(DEPLOY.glob("*.toml")), ids=lambda path: path.name)
def test_the_sample_configurations_make_sense(sample):
    assert config.load(sample).sources
