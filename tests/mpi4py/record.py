"""Runs mpi4py's own test program and keeps a record of every test, one file for each rank.

usage: record.py TESTS RECORDS [--one-buffer] [OPTION...]

TESTS is the unchanged `test` folder of mpi4py's source package, RECORDS a folder, and the options are those of its `main.py`.
With `--one-buffer` each test uses one kind of Python buffer. mpi4py's tests repeat their calls for each kind (`array`, DLPack,
CUDA's array interface), and the kinds differ only in how mpi4py finds the buffer's address.
Each line of a record is written before anything else happens, so that a rank which hangs or dies has said in which test:

    begin TEST      the test starts; TEST is module.Class.method
    pass TEST
    fail TEST       it, or a part of it, failed or raised
    skip TEST       mpi4py leaves it out: the machine lacks something, or it is not meant for this number of processes
    lack TEST       mpi4py leaves it out because it has found that the MPI library lacks something
    end             all tests have been run
"""

import os
import sys
import unittest


def named(test):
    """The method; a module or class that could not be set up, or a module that could not be loaded, stands as a whole."""
    name = test.id()
    for whole in ("setUpModule (", "setUpClass (", "unittest.loader._FailedTest."):
        if name.startswith(whole):
            return name[len(whole) :].rstrip(")")
    return name


class Record(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        # Imported here, after main.py has configured the initialisation of MPI.
        import arrayimpl
        from mpi4py import MPI

        if ONE_BUFFER:
            del arrayimpl.ArrayBackends[1:]
        path = os.path.join(RECORDS, str(MPI.COMM_WORLD.Get_rank()))
        self.file = open(path, "a", buffering=1, encoding="utf-8")
        self.failed = False

    def write(self, what, test):
        self.file.write(f"{what} {named(test)}\n")

    def startTest(self, test):
        self.failed = self.skipped_whole = False
        self.write("begin", test)
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        if not self.skipped_whole or self.failed:
            self.write("fail" if self.failed else "pass", test)

    def bad(self, test):
        if isinstance(test, unittest.TestCase):
            self.failed = True
        else:
            # The runner reports no start and no end of a fixture.
            self.write("fail", test)

    def addError(self, test, error):
        self.bad(test)
        super().addError(test, error)

    def addFailure(self, test, error):
        self.bad(test)
        super().addFailure(test, error)

    def addSubTest(self, test, subtest, error):
        self.failed |= error is not None
        super().addSubTest(test, subtest, error)

    def addUnexpectedSuccess(self, test):
        self.bad(test)
        super().addUnexpectedSuccess(test)

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase) and not hasattr(test, "test_case"):
            self.skipped_whole = True
            lacks = reason.startswith("mpi-") and not reason.startswith("mpi-world-size")
            self.write("lack" if lacks else "skip", test)
        super().addSkip(test, reason)

    def stopTestRun(self):
        self.file.write("end\n")
        super().stopTestRun()


if __name__ == "__main__":
    tests, RECORDS, *options = sys.argv[1:]
    ONE_BUFFER = options[:1] == ["--one-buffer"]
    if ONE_BUFFER:
        del options[0]
    sys.dont_write_bytecode = True
    sys.path.insert(0, tests)
    import main

    runner = unittest.TextTestRunner(resultclass=Record, verbosity=1)
    main.main(module=None, argv=["main.py", *options], testRunner=runner)
