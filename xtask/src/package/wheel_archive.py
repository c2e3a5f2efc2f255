"""The archive of a wheel, for the scripts that follow this one."""

import base64
import hashlib
import os
import sys
import zipfile

# A constant modification time, so that equal files produce an equal archive.
MOMENT = (2020, 1, 1, 0, 0, 0)


class Wheel:
    """A wheel of the package `name` that is being written."""

    def __init__(self, file, name, version, tag, level):
        self.archive = zipfile.ZipFile(file, "w")
        self.info = f"{name}-{version}.dist-info"
        self.tag = tag
        self.level = int(level)
        self.records = []

    def add(self, path, data, mode=0o644):
        entry = zipfile.ZipInfo(path, MOMENT)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data, compresslevel=self.level)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
        self.records.append(f"{path},sha256={digest.decode()},{len(data)}")

    def finish(self, metadata, licenses):
        """Adds the metadata and the licences, given by name and contents, and closes the archive."""
        self.add(f"{self.info}/METADATA", metadata.encode())
        for one, data in licenses:
            self.add(f"{self.info}/licenses/{one}", data)
        about = f"Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\nTag: {self.tag}\n"
        self.add(f"{self.info}/WHEEL", about.encode())
        self.records.append(f"{self.info}/RECORD,,")
        entry = zipfile.ZipInfo(f"{self.info}/RECORD", MOMENT)
        entry.external_attr = 0o100644 << 16
        self.archive.writestr(entry, "\n".join(self.records) + "\n")
        self.archive.close()
