"""The /etc that a sandbox sees: few files, copied once, so that one mount shows them all.

What belongs here: which files of the host's /etc a run-time system needs. What does not: mounting
(``bubblewrap``), where every mount more costs a third of a millisecond at each start.

A sandbox that root starts could read every file that it sees. Keys, accounts and the configuration of the
host's own tools therefore stay out, and accounts are our own.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.leases import lease_folder, sweep_folders

_NEEDED = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "fonts",
    "java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "magic", "magic.mime", "mime.types", "os-release",
    "pki/ca-trust", "pki/java", "pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf",
    "terminfo",
)  # fmt: skip
_NEEDED_GLOBS = ("java-*-openjdk",)
_PREFIX = "bench-etc-"
_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it is ours alone
_ACCOUNTS = Path(__file__).parent / "accounts"


@cache
def system_settings() -> Path:
    """A folder of this process that stands in for /etc; it goes when the process ends.

    Raises:
        SandboxError: it could not be made.
    """
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    try:
        sweep_folders(parent, _PREFIX)
        lease = lease_folder(parent, _PREFIX)
        atexit.register(lease.release)
        etc = lease.folder / "etc"
        fill(etc, Path("/etc"))
    except OSError as error:
        raise SandboxError("making the settings of a sandbox", str(error), f"look at {parent}") from error
    return etc


def fill(etc: Path, host: Path) -> None:
    """Copy what is needed of ``host`` into the new folder ``etc``, and our own accounts over it.

    What we may not read is left out: the sandbox could not read it either.
    """
    etc.mkdir()
    names = [*_NEEDED, *(path.name for pattern in _NEEDED_GLOBS for path in host.glob(pattern))]
    for name in names:
        source, target = host / name, etc / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError, shutil.Error):
            if source.is_dir() and not source.is_symlink():
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target, follow_symlinks=False)
    for file in _ACCOUNTS.iterdir():
        shutil.copyfile(file, etc / file.name)
