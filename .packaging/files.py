"""Archives whose bytes depend on their files and `SOURCE_DATE_EPOCH` only."""

import gzip
import io
import tarfile
import time
import zipfile
from dataclasses import dataclass
from typing import Iterable

from project import TIME

# Of gzip and zip; a test of the packages chooses less.
compression = 9


@dataclass(frozen=True)
class File:
    """A file of a package."""

    path: str
    data: bytes
    is_program: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.is_program else 0o644

    def below(self, folder: str) -> "File":
        return File(f"{folder}/{self.path}", self.data, self.is_program)


def compressed(data: bytes) -> bytes:
    return gzip.compress(data, compression, mtime=TIME)


def tar_gz(files: Iterable[File], with_folders: bool = False) -> bytes:
    """A tar file; Debian's tools also want an entry for each folder."""
    out = io.BytesIO()
    folders = set()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for file in sorted(files, key=lambda it: it.path):
            parts = file.path.split("/")
            for depth in range(1, len(parts)) if with_folders else []:
                folder = "/".join(parts[:depth])
                if folder not in folders and folder != ".":
                    folders.add(folder)
                    entry = tarfile.TarInfo(folder)
                    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, TIME
                    tar.addfile(entry)
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode, entry.mtime = len(file.data), file.mode, TIME
            tar.addfile(entry, io.BytesIO(file.data))
    return compressed(out.getvalue())


def zipped(files: Iterable[File]) -> bytes:
    """A zip file with the files in the given order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=compression) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, time.gmtime(TIME)[:6])
            entry.external_attr = (0o100000 | file.mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.data)
    return out.getvalue()
