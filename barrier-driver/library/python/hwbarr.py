"""One node of the barrier hardware, by libhwbarr.

    with hwbarr.Node("uio:/dev/uio0,node=3") as node:
        node.barrier()
"""

import ctypes
import os


class Error(Exception):
    """Why the hardware could not be used."""


class TimedOut(Error):
    """Not all nodes have arrived in time; the node is still in the barrier."""


def _place():
    """The library: the one of HWBARR_LIBRARY, the one of the wheel, or the system's."""
    named = os.environ.get("HWBARR_LIBRARY")
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libhwbarr.so")
    return named or (beside if os.path.exists(beside) else "libhwbarr.so")


def _load():
    library = ctypes.CDLL(_place())
    library.hwbarr_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    for name in ("enter", "poll", "close"):
        getattr(library, f"hwbarr_{name}").argtypes = [ctypes.c_void_p]
    for name in ("wait", "barrier"):
        getattr(library, f"hwbarr_{name}").argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.hwbarr_error.restype = ctypes.c_char_p
    return library


class Node:
    def __init__(self, port):
        self._library = _load()
        self._node = ctypes.c_void_p()
        self._check(self._library.hwbarr_open(port.encode(), ctypes.byref(self._node)))

    def _check(self, status):
        if status < 0:
            raise Error(self._library.hwbarr_error().decode(errors="replace"))
        return status

    def _in_time(self, status):
        if self._check(status) == 1:
            raise TimedOut("not all nodes have arrived in time")

    def enter(self):
        """Announces that this node has arrived."""
        self._check(self._library.hwbarr_enter(self._node))

    def poll(self):
        """Whether all nodes have arrived, or this node is in no barrier."""
        return self._check(self._library.hwbarr_poll(self._node)) == 1

    def wait(self, seconds=None):
        """Waits until all nodes have arrived; without a number of seconds there is no limit."""
        self._in_time(self._library.hwbarr_wait(self._node, _nanoseconds(seconds)))

    def barrier(self, seconds=None):
        """Enters and waits."""
        self._in_time(self._library.hwbarr_barrier(self._node, _nanoseconds(seconds)))

    def close(self):
        """Withdraws an arrival that has not been released, and releases the port."""
        if self._node:
            node, self._node = self._node, ctypes.c_void_p()
            self._check(self._library.hwbarr_close(node))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _nanoseconds(seconds):
    return 0 if seconds is None else max(1, round(seconds * 1e9))
