"""Writes a wheel of an installation: wheel.py PREFIX FILE VERSION TAG LEVEL."""

import base64
import hashlib
import os
import sys
import zipfile

prefix, file, version, tag, level = sys.argv[1:]
name = f"portcullis-{version}"
info = f"{name}.dist-info"
records = []
# A constant time, so that equal files give an equal archive.
MOMENT = (2020, 1, 1, 0, 0, 0)


def add(archive, path, data, mode):
    entry = zipfile.ZipInfo(path, MOMENT)
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data, compresslevel=int(level))
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    records.append(f"{path},sha256={digest.decode()},{len(data)}")


DOCUMENTS = os.path.join(prefix, "share/doc/portcullis")
LICENSES = sorted(name for name in os.listdir(DOCUMENTS) if name.startswith("LICENSE"))
LICENSE_FILES = "".join(f"License-File: {one}\n" for one in LICENSES)

METADATA = f"""Metadata-Version: 2.4
Name: portcullis
Version: {version}
Summary: MPI: the library libmpi_abi.so.1 of the MPI 5.0 standard ABI, mpirun, mpicc
License-Expression: MIT OR Apache-2.0
{LICENSE_FILES}Requires-Python: >=3.8
Description-Content-Type: text/plain

mpirun, mpicc and mpi.h of Portcullis, an MPI library with the standard MPI 5.0 ABI.
Programs of MPICH, Intel MPI and Open MPI, mpi4py among them, run under its mpirun as they are.
"""

WHEEL = f"""Wheel-Version: 1.0
Generator: cargo xtask package
Root-Is-Purelib: false
Tag: {tag}
"""

with zipfile.ZipFile(file, "w") as archive:
    for folder, folders, names in sorted(os.walk(prefix)):
        folders.sort()
        for one in sorted(names):
            path = os.path.join(folder, one)
            inside = os.path.relpath(path, prefix)
            if inside == "lib/portcullis/abi/libmpi_abi.so.1":
                # A link in other packages, by which programs find the library; a copy would not find the files beside the original.
                continue
            with open(path, "rb") as source:
                data = source.read()
            if inside in ("lib/libmpi_abi.so", "lib/libmpifort_abi.so"):
                # A link in other packages; the linker reads this script instead of a copy.
                data = f"INPUT({os.path.basename(inside)}.1)\n".encode()
            mode = 0o755 if os.stat(path).st_mode & 0o100 else 0o644
            if inside.startswith("share/portcullis/python/"):
                # Where Python finds modules.
                add(archive, one, data, mode)
                continue
            add(archive, f"{name}.data/data/{inside}", data, mode)
            if inside == "lib/portcullis/compat/mpich/libmpi.so.12":
                # mpi4py loads this name, also without mpirun.
                add(archive, f"{name}.data/data/lib/libmpi.so.12", data, mode)
    add(archive, f"{info}/METADATA", METADATA.encode(), 0o644)
    for one in LICENSES:
        with open(os.path.join(DOCUMENTS, one), "rb") as text:
            add(archive, f"{info}/licenses/{one}", text.read(), 0o644)
    add(archive, f"{info}/WHEEL", WHEEL.encode(), 0o644)
    records.append(f"{info}/RECORD,,")
    entry = zipfile.ZipInfo(f"{info}/RECORD", MOMENT)
    entry.external_attr = 0o100644 << 16
    archive.writestr(entry, "\n".join(records) + "\n")
