"""Writes a wheel of an installation: wheel.py PREFIX FILE VERSION TAG LEVEL."""

prefix, file, version, tag, level = sys.argv[1:]
wheel = Wheel(file, "portcullis", version, tag, level)

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

for folder, folders, names in sorted(os.walk(prefix)):
    folders.sort()
    for one in sorted(names):
        path = os.path.join(folder, one)
        inside = os.path.relpath(path, prefix)
        if inside == "lib/portcullis/abi/libmpi_abi.so.1":
            # Other packages have a link here, by which programs find the library;
            # a copy would not find the files in the original folder.
            continue
        with open(path, "rb") as source:
            data = source.read()
        if inside in ("lib/libmpi_abi.so", "lib/libmpifort_abi.so"):
            # Other packages have a link here; a wheel has this linker script instead.
            data = f"INPUT({os.path.basename(inside)}.1)\n".encode()
        mode = 0o755 if os.stat(path).st_mode & 0o100 else 0o644
        if inside.startswith("share/portcullis/python/"):
            # Python finds modules in the root of the wheel.
            wheel.add(one, data, mode)
            continue
        place = f"portcullis-{version}.data/data"
        wheel.add(f"{place}/{inside}", data, mode)
        if inside == "lib/portcullis/compat/mpich/libmpi.so.12":
            # mpi4py loads the library under this name, also without mpirun.
            wheel.add(f"{place}/lib/libmpi.so.12", data, mode)


def text_of(one):
    with open(os.path.join(DOCUMENTS, one), "rb") as text:
        return text.read()


wheel.finish(METADATA, [(one, text_of(one)) for one in LICENSES])
