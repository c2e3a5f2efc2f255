"""Writes the wheel of libhwbarr: FOLDER FILE VERSION TAG LEVEL; the folder has the files of the module and the licences."""

folder, file, version, tag, level = sys.argv[1:]
wheel = Wheel(file, "hwbarr", version, tag, level)


def bytes_of(one):
    with open(os.path.join(folder, one), "rb") as source:
        return source.read()


names = sorted(os.listdir(folder))
licenses = [one for one in names if one.startswith("LICENSE")]
for one in names:
    if one not in licenses:
        wheel.add(f"hwbarr/{one}", bytes_of(one), 0o755 if one.endswith(".so") else 0o644)
license_files = "".join(f"License-File: {one}\n" for one in licenses)
metadata = f"""Metadata-Version: 2.4
Name: hwbarr
Version: {version}
Summary: One node of the Portcullis barrier hardware: enter, poll, wait
License-Expression: MIT OR Apache-2.0
{license_files}Requires-Python: >=3.8
Description-Content-Type: text/plain

A node of barrier hardware from Python, without MPI: hwbarr.Node("uio:/dev/uio0,node=3").barrier().
The wheel contains libhwbarr.so and its C header.
"""
wheel.finish(metadata, [(one, bytes_of(one)) for one in licenses])
