#!/usr/bin/env python3
"""Makes procedures.txt and constants.txt from the tables that the MPI Forum publishes with the standard.

usage: from_standard.py APIS.json ABI.json

Both files are made in the folder of this script.
"""

import json
import pathlib
import sys

PROCEDURES = """\
# The Fortran side of every MPI 5.0 procedure: the one source of mpif.h, of the modules and of the bodies in the library.
# Made by from_standard.py from the machine-readable tables that the MPI Forum publishes with the standard.
#
# A procedure is one line that starts in the first column:
#     NAME [returns KIND] [only mpi | only f08] [callback] [predefined FUNCTION] [mpif no] [no-c]
# Each of its parameters is one indented line, in the order of the standard:
#     name KIND in|out|inout [[LENGTH]] [function NAME] [async] [no-intent] [pointer] [root] [large] [hidden]
# `[LENGTH]` is given for an array; `*` is a length that no parameter tells.
# `pointer` marks an argument that is only read and that C takes by its address.
# `large` marks a parameter of the large-count twin only; `hidden` one that Fortran does not have.
# The last parameter of a procedure that does not return a value is ierror, which is not listed.
"""

CONSTANTS = """\
# The constants of the Fortran interface, from the tables that the MPI Forum publishes with the standard.
# Made by from_standard.py.
#
# A constant is one line: NAME VALUE TYPE. TYPE is INTEGER, or the derived type that the constant has in module mpi_f08.
# Lengths of strings are those of C: Fortran's are one less.
# Sentinels, predefined functions and what depends on the compiler are not here.
"""

# Categories of constants that are addresses or procedures in Fortran.
NO_VALUES = ("BUFFER_ADDR_CONSTANTS", "EMPTY_IGNORE_INPUT_CONSTANTS", "FUNCTIONS", "DEPRECATED_FUNCS")


def head(function):
    """The line of a procedure."""
    attributes = function["attributes"]
    words = [function["name"]]
    has_ierror = any(p["name"] == "ierror" for p in function["parameters"])
    if function["return_kind"] != "ERROR_CODE":
        words.append("returns " + function["return_kind"])
    elif not (has_ierror or attributes["callback"] or attributes["predefined_function"]):
        words.append("returns NOTHING")
    if not attributes["f08_expressible"]:
        words.append("only mpi")
    if not attributes["f90_expressible"]:
        words.append("only f08")
    if attributes["callback"]:
        words.append("callback")
    if attributes["predefined_function"]:
        words.append("predefined " + attributes["predefined_function"])
    if attributes["not_with_mpif"]:
        words.append("mpif no")
    if not attributes["c_expressible"]:
        words.append("no-c")
    return " ".join(words)


def parameter(given):
    """The line of a parameter."""
    words = [given["name"], given["kind"], given["param_direction"]]
    length = given["length"]
    if isinstance(length, list):
        length = "3," + length[0]
    if length is not None or given["array_type"] == "hidden":
        words.append("[" + (length or "*") + "]")
    if given["array_type"] == "hidden":
        words[-1] = "[" + (length or "*") + "]"
    if given["func_type"]:
        words.append("function " + given["func_type"])
    suppressed = given["suppress"].split()
    marks = {
        "async": given["asynchronous"],
        "no-intent": "f08_intent" in suppressed,
        "pointer": given["pointer"] and given["kind"] == "REQUEST",
        "root": given["root_only"],
        "large": given["large_only"],
        "hidden": "f08_parameter" in suppressed or "f90_parameter" in suppressed,
    }
    words += [name for name, is_set in marks.items() if is_set]
    return "    " + " ".join(words)


def procedures(apis):
    """The lines of all procedures that Fortran has."""
    for _, function in sorted(apis.items()):
        attributes = function["attributes"]
        if not (attributes["f90_expressible"] or attributes["f08_expressible"]):
            continue
        yield head(function)
        for given in function["parameters"]:
            if not (given["name"] == "ierror" and given["optional"]):
                yield parameter(given)


def constants(abi):
    """The lines of all constants with a value in Fortran."""
    for constant in abi["constants"].values():
        types, value = constant["handle_types"], constant["abi_value"]
        fortran, c = types.get("f08"), types.get("c")
        if not fortran or not fortran["type"] or constant["category"] in NO_VALUES:
            continue
        if not isinstance(value, int):
            continue
        of = fortran["type"].replace("TYPE(", "").replace(")", "")
        # The published types of a few handles in Fortran are wrong; those in C are right.
        if c and c["type"] and c["type"].startswith("MPI_") and c["type"] not in ("MPI_Aint", "MPI_Count"):
            of = c["type"]
        yield f"{constant['name']} {value} {of}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder = pathlib.Path(__file__).parent
    tables = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:]]
    for name, text, lines in (
        ("procedures.txt", PROCEDURES, procedures(tables[0])),
        ("constants.txt", CONSTANTS, constants(tables[1])),
    ):
        (folder / name).write_text(text + "\n" + "\n".join(lines) + "\n")


main()
