"""How much a command's folders hold, asked cheaply and often.

The free space of the file systems is one call; only when it has shrunk by more than the limit, which other
cells may have caused, are the folders walked.
"""

import os
from pathlib import Path


class DiskGauge:
    """Tells whether ``folders`` have grown beyond ``limit`` bytes since this gauge was made."""

    def __init__(self, folders: tuple[Path, ...], limit: int | None) -> None:
        self._folders = folders
        self._limit = limit
        self._free = self._free_bytes() if limit is not None else 0

    def over(self) -> bool:
        """Whether the folders hold more than the limit allows."""
        if self._limit is None or self._free - self._free_bytes() <= self._limit:
            return False
        return allocated_bytes(self._folders) > self._limit

    def _free_bytes(self) -> int:
        systems = {folder.stat().st_dev: folder for folder in self._folders}
        stats = [os.statvfs(folder) for folder in systems.values()]
        return sum(found.f_bfree * found.f_frsize for found in stats)


def allocated_bytes(folders: tuple[Path, ...]) -> int:
    """The bytes that files below ``folders`` take up on disk; links are not followed, holes take nothing."""
    total = 0
    ahead = [os.fsencode(folder) for folder in folders]
    while ahead:
        try:
            with os.scandir(ahead.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    total += found.st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        ahead.append(entry.path)
        except OSError:
            # Folders come and go while a command works.
            continue
    return total
