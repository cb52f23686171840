"""Validation of agent.toml."""

from pathlib import Path

import pytest

from collectors.agent import config
from collectors.agent.config import ConfigError

DEPLOY = Path(__file__).parents[3] / "deploy"
TOP = '[portal]\nurl = "https://io.example.org"\n[agent]\nstate = "/var/lib/agent"\n'
SOURCE = '[[source]]\nname = "mds1"\nformat = "rpctrace"\ntoken_file = "t"\nfile = "/var/log/x"\n'


def load(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return config.load(path)


def test_defaults_of_a_minimal_configuration(tmp_path):
    loaded = load(tmp_path, TOP + SOURCE)
    [source] = loaded.sources

    assert loaded.spool_bytes == 1_000_000_000
    assert (source.kind, source.path, source.every_s) == ("file", "/var/log/x", 1)
    assert source.token_file == tmp_path / "t"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "portal is missing", id="empty"),
        pytest.param("[portal", "agent.toml", id="not TOML"),
        pytest.param(TOP, "source is missing", id="no source"),
        pytest.param(
            (TOP + SOURCE).replace("https://io", "http://io"), "must start with https", id="no TLS"
        ),
        pytest.param(TOP + SOURCE + SOURCE, "each with a unique name", id="a repeated name"),
        pytest.param(TOP + SOURCE + "evrey = '5s'\n", "'evrey'", id="a misspelled key"),
        pytest.param(TOP + SOURCE + "every = '5'\n", "a duration such as", id="no unit"),
        pytest.param(TOP + SOURCE + "pipe = '/p'\n", "one of file, pipe", id="two kinds"),
        pytest.param(
            TOP + SOURCE.replace("/var/log/x", "x"), "an absolute path", id="a relative path"
        ),
        pytest.param(TOP + SOURCE.replace("mds1", "../mds1"), "letters, digits", id="a bad name"),
        pytest.param(TOP + SOURCE.replace("rpctrace", "sacct"), "one of rpctrace, pbs", id="kind"),
        pytest.param(TOP + SOURCE.replace("rpctrace", "pbs"), "zone is missing", id="no zone"),
        pytest.param(
            TOP + SOURCE.replace("rpctrace", "pbs") + "zone = 'Mars'\n",
            "a time zone",
            id="unknown zone",
        ),
    ],
)
def test_an_invalid_configuration_is_refused_with_a_remedy(tmp_path, text, reason):
    with pytest.raises(ConfigError, match=reason):
        load(tmp_path, text)


def test_a_configuration_that_other_users_can_write_to_is_refused(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(TOP + SOURCE)
    path.chmod(0o646)

    with pytest.raises(ConfigError, match=f"can write to it: chmod 644 {path}"):
        config.load(path)


@pytest.mark.parametrize("sample", sorted(DEPLOY.glob("*.toml")), ids=lambda path: path.name)
def test_the_sample_configurations_are_valid(sample):
    assert config.load(sample).sources
