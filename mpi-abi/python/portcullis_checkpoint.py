"""Checkpoints of an MPI job from Python, with mpi4py and without anything to compile.

    import portcullis_checkpoint as checkpoint

    checkpoint.handlers(save, load)
    while step < steps:
        if checkpoint.point() == checkpoint.STOP:
            break
        ...

`mpirun --checkpoint-dir DIR` takes checkpoints, `mpirun --restart DIR` takes the job up again.
Without the former a point does nothing, so the program needs no other form for other runs.
"""

import ctypes
import traceback

from mpi4py import MPI

# The return values of point().
NONE = 0
TAKEN = 1
RESTORED = 2
STOP = 3
FAILED = 4

_FOLDER = 4096
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

# mpi4py has already loaded this library.
_library = ctypes.CDLL("libmpi_abi.so.1")
if not hasattr(_library, "MPIX_Checkpoint_point"):
    raise ImportError(
        "the MPI library of this process has no checkpoints: " + MPI.Get_library_version()
    )

# The handle of MPI_COMM_WORLD in the standard binary interface.
_COMM_WORLD = 0x101


def _has_standard_handles():
    """Returns True if mpi4py was compiled for the standard binary interface, whose handles have the size of a pointer."""
    if MPI._sizeof(MPI.COMM_WORLD) != ctypes.sizeof(ctypes.c_void_p):
        return False
    return ctypes.c_void_p.from_address(MPI._addressof(MPI.COMM_WORLD)).value == _COMM_WORLD


if not _has_standard_handles():
    raise ImportError(
        "this mpi4py was compiled for the binary interface of MPICH or Open MPI, and checkpoints need the standard one:"
        " compile it with Portcullis's mpicc first in PATH: pip install --no-binary mpi4py mpi4py"
    )

# References to the callbacks and buffers that the library uses until the process ends.
_kept = {}


def _check(code):
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)


def _handle(of):
    return ctypes.c_void_p.from_address(MPI._addressof(of))


def _handler(function):
    if function is None:
        return ctypes.cast(None, _HANDLER)

    def call(folder, _):
        # An exception must not leave the callback, so it returns an error, which the library reports.
        try:
            function(folder.decode())
            return 0
        except BaseException:
            traceback.print_exc()
            return 1

    return _HANDLER(call)


def handlers(save=None, load=None):
    """Registers the functions that write and read this rank's files: save(folder), load(folder).

    Each gets the path of a folder of this rank. One that raises an exception fails the checkpoint or the restart.
    They may call MPI. None: no function.
    """
    functions = (_handler(save), _handler(load))
    _check(_library.MPIX_Checkpoint_handlers(functions[0], functions[1], None))
    _kept["handlers"] = functions


def protect(number, memory):
    """Lets the library save memory: an object with a writable contiguous buffer, such as an array of NumPy.

    Its number tells it from others at a restart; again with the same number replaces it, and None ends it.
    """
    number = int(number)
    if memory is None:
        nothing = ctypes.c_void_p(None)
        _check(_library.MPIX_Checkpoint_protect(number, nothing, ctypes.c_longlong(0), _handle(MPI.BYTE)))
        _kept.pop(number, None)
        return
    view = memoryview(memory).cast("B")
    # The ctypes array shares the object's buffer, which cannot be resized meanwhile.
    base = (ctypes.c_char * view.nbytes).from_buffer(view)
    count = ctypes.c_longlong(view.nbytes)
    _check(_library.MPIX_Checkpoint_protect(number, base, count, _handle(MPI.BYTE)))
    _kept[number] = base


def point(comm=MPI.COMM_WORLD):
    """Called by all ranks where no message is in flight; returns NONE, TAKEN, RESTORED, STOP or FAILED."""
    what = ctypes.c_int()
    _check(_library.MPIX_Checkpoint_point(_handle(comm), ctypes.byref(what)))
    return what.value


def request(comm=MPI.COMM_WORLD):
    """Asks for a checkpoint, which one of the next points takes. Called by one rank or by several."""
    _check(_library.MPIX_Checkpoint_request(_handle(comm)))


def restarted():
    """Returns the folder with this rank's files if the job begins from a checkpoint, else None."""
    flag, length = ctypes.c_int(), ctypes.c_int()
    folder = ctypes.create_string_buffer(_FOLDER)
    _check(_library.MPIX_Checkpoint_restarted(ctypes.byref(flag), folder, ctypes.byref(length)))
    return folder.value.decode() if flag.value else None
