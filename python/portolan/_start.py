"""Starts the runtime when the package is imported, and ends it at exit."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import threading
from types import TracebackType

from . import _mpi

if _mpi.is_subinterpreter():
    raise ImportError(
        "portolan works in the main interpreter of a process only, because MPI and the runtime belong "
        "to the process"
    )
_native, _library = _mpi.load()

Error = _native.Error
rank = _native.rank
size = _native.size
node = _native.node
nodes = _native.nodes
node_ranks = _native.node_ranks


def mpi_library() -> str:
    """Return the name or path of the MPI library that the package uses."""
    return _library


def abort(code: int = 1) -> None:
    """End all ranks of the job with an exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    _native.abort(code)


if threading.current_thread() is not threading.main_thread():
    raise Error("portolan must be imported by the main thread, which ends MPI at exit")
# A child of multiprocessing is no rank of the job, but may import the main program again. This
# attribute exists during that import, which precedes the rest of the child's start.
is_child = multiprocessing.parent_process() is not None or hasattr(
    multiprocessing.current_process(), "_inheriting"
)


def _end() -> None:
    try:
        _native.end()
    except Error as error:
        print(f"portolan cannot end, so it aborts the job: {error}", file=sys.stderr)
        abort()


if not is_child:
    _native.start()
    atexit.register(_end)

_print_exception = sys.excepthook


def _end_job(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception and end the job, whose other ranks would wait for this one."""
    try:
        if _size > 1:
            print(f"rank {_rank} of {_size}, process {os.getpid()}:", file=sys.stderr)
        _print_exception(kind, value, trace)
    finally:
        if _size > 1 and not (hasattr(sys, "ps1") or sys.flags.interactive):
            abort(130 if issubclass(kind, KeyboardInterrupt) else 1)


if not is_child:
    _rank, _size = rank(), size()
    sys.excepthook = _end_job
