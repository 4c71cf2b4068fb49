"""No spelling of a code forge, and nothing that hides one, can be put on an allow-list."""

import pytest

from bench_pipeline.documents.hosts import refuse_forge_hosts


@pytest.mark.parametrize(
    "host",
    ["api.openai.com", "api.anthropic.com", "*.example.com", "localhost", "127.0.0.1", "10.0.0.8", "::1",
     "github.com.example.org", "notgithub.com", "my-gitlab.example.com", "bedrock.us-east-1.amazonaws.com"],
)  # fmt: skip
def test_other_hosts_are_allowed(host):
    refuse_forge_hosts([host])


@pytest.mark.parametrize(
    "host",
    ["github.com", "api.github.com", "GitHub.COM", "github.com.", "raw.githubusercontent.com", "codeload.github.com",
     "x.github.io", "gitlab.com", "registry.gitlab.com", "x.gitlab.io", "bitbucket.org", "codeberg.org",
     "x.codeberg.page", "git.sr.ht", "sr.ht", "ghcr.io", "cdn.jsdelivr.net", "github-cloud.s3.amazonaws.com",
     "github-production-release-asset-2e65be.s3.us-east-1.amazonaws.com", "\uff47ithub.com"],
)  # fmt: skip
def test_a_forge_is_refused_however_it_is_written(host):
    with pytest.raises(ValueError, match="can never be allowed"):
        refuse_forge_hosts([host])


@pytest.mark.parametrize("host", ["*.github.com", "*.com", "*.org", "*.ht", "*.amazonaws.com"])
def test_a_wildcard_that_takes_in_a_forge_is_refused(host):
    with pytest.raises(ValueError, match="can never be allowed"):
        refuse_forge_hosts([host])


@pytest.mark.parametrize(
    "host", ["140.82.121.3", "[2606:50c0:8000::154]", "2606:50c0:8000::154", "::ffff:140.82.121.3"]
)
def test_a_public_address_is_refused_since_it_hides_a_name(host):
    with pytest.raises(ValueError, match="name the host"):
        refuse_forge_hosts([host])


@pytest.mark.parametrize(
    "host",
    ["", "*", "https://api.example.com", "api.example.com:443", "api.example.com/x", "user@github.com", "a b", "a..b",
     ".example.com", "x.*.com", "2354234627", "0x8c.0x52.0x79.0x03", "140.82.121", "github\u3002com", "-x.com"],
)  # fmt: skip
def test_what_is_no_host_name_is_refused(host):
    with pytest.raises(ValueError, match="not a host name"):
        refuse_forge_hosts([host])


def test_all_problems_are_told_at_once():
    with pytest.raises(ValueError, match=r"github\.com.*gitlab\.com"):
        refuse_forge_hosts(["github.com", "api.example.com", "gitlab.com"])
