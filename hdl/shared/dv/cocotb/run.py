"""Runs the suite: `python3 run.py [icarus|verilator] [FOLDER]`; the folder, if none is given, is one that is removed.

cocotb 2.1 needs Verilator 5.036 or later; with Icarus any version from 11 on does.
"""

import sys
import tempfile
from pathlib import Path

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

HDL = Path(__file__).resolve().parents[3]
FOLDERS = ["toggle", "channels", "registers", "shared"]
# The runner passes this list to the simulator's Python.
sys.path[:0] = [str(HDL / folder / "dv" / "cocotb") for folder in FOLDERS]
TOGGLE = ["toggle_barrier", "synchroniser", "level_filter", "toggle_machine"]
CHANNEL = [
    "channel_barrier",
    "synchroniser",
    "channel_machine",
    "channel_line",
    "channel_arbiter",
    "channel_frame",
    "channel_command",
]
AXI4LITE = ["barrier_axi4lite", "axi4lite_front", "barrier_regs", "synchroniser", "start_pulse", "channel_machine"]
SUITES = [
    ("toggle_barrier", TOGGLE, {"N": 4, "FILTER": 1}),
    ("toggle_barrier", TOGGLE, {"N": 60, "FILTER": 1}),
    ("toggle_barrier", TOGGLE, {"N": 4, "FILTER": 4}),
    ("channel_barrier", CHANNEL, {"N": 4, "C": 5}),
    ("axi4lite_names", ["axi4lite_names"] + AXI4LITE, {"N": 3, "G": 1}),
]


def source(module):
    """The file of a module, which is in one of the folders."""
    places = [HDL / folder / kind / f"{module}.v" for folder in FOLDERS for kind in ("rtl", "dv")]
    return next(file for file in places if file.exists())


def main(simulator, folder):
    failed = 0
    for top, files, parameters in SUITES:
        name = "-".join([top] + [f"{key}{value}" for key, value in parameters.items()])
        build = Path(folder) / name
        runner = get_runner(simulator)
        runner.build(
            sources=[source(file) for file in files],
            hdl_toplevel=top,
            parameters=parameters,
            build_dir=build,
            timescale=("1ps", "1ps"),
            build_args=["-Wno-fatal"] if simulator == "verilator" else [],
        )
        results = runner.test(
            hdl_toplevel=top,
            test_module=f"test_{top}",
            test_dir=build,
            build_dir=build,
            parameters=parameters,
            timescale=("1ps", "1ps"),
            results_xml=str(build / "results.xml"),
            extra_env={
                "BARRIER_N": str(parameters["N"]),
                "BARRIER_FILTER": str(parameters.get("FILTER", 1)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
        )
        tests, failures = get_results(results)
        print(f"{simulator}: {name}: {tests - failures} of {tests} pass")
        failed += failures
    return 1 if failed else 0


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else "icarus"
    if len(sys.argv) > 2:
        sys.exit(main(which, sys.argv[2]))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(which, made))
