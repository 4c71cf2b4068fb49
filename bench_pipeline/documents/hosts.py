"""Host names in documents: what a network allow-list may name.

What belongs here: the check of a host name and the hosts that can never be allowed, because they serve the
later history of the very repositories that tasks are made from. What does not: opening a network (execution).
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterable

# Code forges, the hosts that serve their content, and public mirrors of that content.
_FORGE_DOMAINS = (
    "github.com",
    "github.io",
    "github.dev",
    "githubusercontent.com",
    "githubassets.com",
    "githubapp.com",
    "git.io",
    "ghcr.io",
    "gitlab.com",
    "gitlab.io",
    "gitlab-static.net",
    "bitbucket.org",
    "bitbucket.io",
    "codeberg.org",
    "codeberg.page",
    "sr.ht",
    "srht.site",
    "jsdelivr.net",
    "githack.com",
    "rawgit.com",
    "statically.io",
    "github-cloud.s3.amazonaws.com",
    "github-releases.s3.amazonaws.com",
    "bbuseruploads.s3.amazonaws.com",
)
# Resolvers read a name whose last label is a number as an address in disguise: 2355427332, 0x8c.0x52.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# Bucket names of forges come and go; all that are known start with the forge's name.
_FORGE_BUCKET = re.compile(
    r"(git(hub|lab)|bitbucket|bbuseruploads)[a-z0-9-]*\.s3[.-]([a-z0-9-]+\.)*amazonaws\.com"
)
_HOST = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")


def refuse_forge_hosts(hosts: Iterable[str]) -> None:
    """Raises ValueError for every host that an allow-list may not name, all in one message.

    A host is a plain name such as ``api.example.com`` or ``*.example.com``; a wildcard that would take in a
    code forge is refused like the forge itself. A public address is refused because it would hide the name.
    """
    problems = [problem for problem in map(_problem, hosts) if problem]
    if problems:
        raise ValueError("; ".join(problems))


def _problem(written: str) -> str | None:
    # NFKC folds full-width letters and dots, which resolvers fold as well.
    host = unicodedata.normalize("NFKC", written).lower().rstrip(".")
    address = _address(host)
    if address is not None:
        return f"{written!r} is a public address: name the host" if address.is_global else None
    if not _HOST.fullmatch(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
        return f"{written!r} is not a host name such as api.example.com (no scheme, port or path)"
    if _is_forge(host):
        return f"{written!r} can never be allowed: it serves the repositories that tasks are made from"
    return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_forge(host: str) -> bool:
    name = host.removeprefix("*.")
    if any(name == domain or name.endswith(f".{domain}") for domain in _FORGE_DOMAINS):
        return True
    if _FORGE_BUCKET.fullmatch(name):
        return True
    return host != name and any(domain.endswith(f".{name}") for domain in _FORGE_DOMAINS)
