"""One node of the barrier hardware, by libhwbarr.

    with hwbarr.Node("uio:/dev/uio0,node=3") as node:
        node.barrier()
"""

import ctypes
import os
import time

# Maximum time of one call into the library, in seconds: between two calls Python handles signals, so Ctrl-C ends a wait.
_SLICE = 0.1


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
    place = _place()
    try:
        library = ctypes.CDLL(place)
    except OSError as problem:
        raise Error(f"the library {place} cannot be loaded, HWBARR_LIBRARY names another: {problem}") from None
    try:
        _declare(library)
    except AttributeError as missing:
        raise Error(f"the library {place} is of another version than this module: {missing}") from None
    return library


def _declare(library):
    """Declares the arguments and results of the functions; each must exist."""
    library.hwbarr_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    library.hwbarr_wait.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.hwbarr_set_start_pulse.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int]
    number = ctypes.POINTER(ctypes.c_uint32)
    library.hwbarr_start_time.argtypes = [ctypes.c_void_p, number, number]
    for name in ("enter", "poll", "close"):
        getattr(library, f"hwbarr_{name}").argtypes = [ctypes.c_void_p]
    library.hwbarr_error.restype = ctypes.c_char_p


class Node:
    """A node at a port, such as "uio:/dev/uio0,node=3"; `hwbarr port list` has the texts of all ports."""

    def __init__(self, port):
        self._node = ctypes.c_void_p()
        if not isinstance(port, str):
            raise TypeError('a port is a str, such as "uio:/dev/uio0,node=3"')
        self._library = _load()
        self._check(self._library.hwbarr_open(port.encode(), ctypes.byref(self._node)))

    def _check(self, status):
        if status < 0:
            raise Error(self._library.hwbarr_error().decode(errors="replace"))
        return status

    def _open(self):
        if not self._node:
            raise Error("the node is closed")
        return self._node

    def enter(self):
        """Announces that this node has arrived."""
        self._check(self._library.hwbarr_enter(self._open()))

    def poll(self):
        """Whether all nodes have arrived, or this node is in no barrier."""
        return self._check(self._library.hwbarr_poll(self._open())) == 1

    def wait(self, seconds=None):
        """Waits until all nodes have arrived; without a number of seconds there is no limit."""
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _SLICE if end is None else min(_SLICE, end - time.monotonic())
            if self._check(self._library.hwbarr_wait(self._open(), max(1, round(left * 1e9)))) == 0:
                return
            if left < _SLICE:
                raise TimedOut("not all nodes have arrived in time")

    def barrier(self, seconds=None):
        """Enters and waits."""
        self.enter()
        self.wait(seconds)

    def set_start_pulse(self, cycles, low=False):
        """After each release of this node's group, the register block's line start_o is active for this many cycles of its clock.

        The line is low in a pulse if `low`, and high otherwise; 0 cycles for no pulse after this group.
        Width and level are those of all groups of the block.
        """
        if not 0 <= cycles <= 65535:
            raise ValueError(f"a start pulse has 0 to 65535 cycles, not {cycles}")
        self._check(self._library.hwbarr_set_start_pulse(self._open(), cycles, low))

    def start_time(self):
        """The cycle of the release that began the last start pulse, modulo 2**32, 0 for none, and the clock's frequency in Hz, 0 if unknown."""
        cycle, hertz = ctypes.c_uint32(), ctypes.c_uint32()
        self._check(self._library.hwbarr_start_time(self._open(), ctypes.byref(cycle), ctypes.byref(hertz)))
        return cycle.value, hertz.value

    def close(self):
        """Withdraws an arrival that has not been released, and releases the port."""
        if self._node:
            node, self._node = self._node, ctypes.c_void_p()
            self._check(self._library.hwbarr_close(node))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Error:
            pass  # A node without an owner reports to no process.
