"""The choice of the MPI, and programs that use mpi4py, too."""

import os
import subprocess
import sys

import pytest


def test_one_process_needs_no_launcher(jobs):
    ended = jobs.run("import portolan as pt\nprint(pt.size(), pt.zeros(3).sum())", n=0)
    assert ended.code == 0 and ended.out.split() == ["1", "0.0"], ended.text


def test_every_rank_belongs_to_one_job(jobs):
    ended = jobs.run("import portolan as pt\nprint(f'{pt.rank()}/{pt.size()}\\n', end='')", n=3)
    assert sorted(ended.out.split()) == ["0/3", "1/3", "2/3"], ended.text


@pytest.mark.parametrize(
    "choice, message",
    [
        ("nonsense", "expected one of mpich, openmpi"),
        ("/none/libmpi.so.12", "/none/libmpi.so.12"),
        ("/none/libmpi.so.40", "/none/libmpi.so.40"),
        ("/none/libmpi_abi.so.1", "/none/libmpi_abi.so.1"),
        ("libm.so.6", "libm.so.6"),
    ],
)
def test_a_choice_that_does_not_fit_is_one_error(jobs, choice, message):
    ended = jobs.run("import portolan", n=0, PORTOLAN_MPI=choice)
    assert ended.code == 1
    lines = [line for line in ended.err.splitlines() if line.startswith("ImportError: portolan")]
    assert len(lines) == 1 and message in ended.err, ended.text


def test_the_standard_interface_of_mpi(jobs):
    if not os.path.exists(os.path.join(sys.prefix, "lib", "libmpi_abi.so.1")):
        pytest.skip("no MPI of this environment has the standard interface")
    program = """
        import portolan as pt
        a = pt.zeros((6, 4))
        a[pt.rank(), :] = pt.rank() + 1
        a.sync()
        print(f"{pt.mpi_library().rpartition('/')[2]} {a.sum()}\\n", end="")
        """
    ended = jobs.run(program, n=3, PORTOLAN_MPI="abi")
    assert ended.out.splitlines() == 3 * ["libmpi_abi.so.1 24.0"], ended.text


@pytest.mark.parametrize("first", ["mpi4py.MPI", "portolan"])
def test_mpi4py_starts_before_or_after(jobs, first):
    jobs.needs_mpi4py()
    second = "portolan" if first == "mpi4py.MPI" else "mpi4py.MPI"
    ended = jobs.run(
        f"""
        import {first}
        import {second}
        from mpi4py import MPI
        import portolan as pt
        assert (pt.rank(), pt.size()) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
        a = pt.zeros(4, "i8")
        a.add(..., 1)
        total = MPI.COMM_WORLD.allreduce(pt.rank() + 1)
        a.sync()
        assert total == 3 and (a[...] == 2).all()
        print("done")
        """
    )
    assert ended.code == 0 and ended.out.count("done") == 2, ended.text


def test_the_program_ends_mpi_itself(jobs):
    jobs.needs_mpi4py()
    ended = jobs.run(
        """
        from mpi4py import MPI
        import portolan as pt
        a = pt.zeros(4)
        MPI.Finalize()
        try:
            a[0]
        except pt.Error as error:
            print("refused")
        """
    )
    assert ended.code == 0 and ended.out.count("refused") == 2, ended.text


def test_the_import_is_fast(jobs):
    """A bound that a loaded machine keeps; benches/import.py measures."""
    ended = jobs.run("import numpy, time\nt=time.time()\nimport portolan\nprint(time.time()-t < 10)", n=1)
    assert ended.out.split() == ["True"], ended.text


def test_portolan_info(jobs):
    import os
    import shutil

    program = os.path.join(os.path.dirname(sys.executable), "portolan-info")
    if not os.path.exists(program):
        pytest.skip("the package is not installed")
    info = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert info.returncode == 0 and "MPI" in info.stdout, info.stdout + info.stderr
    report = shutil.which("portolan-report", path=os.path.dirname(sys.executable))
    helped = subprocess.run([report, "--help"], capture_output=True, text=True, timeout=60)
    assert helped.returncode == 0 and "portolan-report" in helped.stdout


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing(jobs, method):
    program = f"""
        import multiprocessing
        import numpy as np
        import portolan as pt

        def work(n):
            try:
                pt.zeros(3)
            except pt.Error:
                return np.arange(n).sum()

        if __name__ == "__main__":
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                print(pool.map(work, [3, 4]) == [3, 6] and pt.world.sum(1))
        """
    ended = jobs.run(program, n=2)
    assert ended.out.split() == ["2", "2"], ended.text


def test_a_subinterpreter_cannot_import_the_package(jobs):
    ended = jobs.run(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        run = getattr(interpreters, "exec", None) or interpreters.run_string
        other = interpreters.create()
        try:
            found = run(other, "import portolan")
        except Exception as error:
            found = error
        print("found:", found)
        import portolan as pt
        print("sum", pt.zeros(3).sum())
        """,
        n=0,
    )
    assert ended.code == 0 and "main interpreter" in ended.out, ended.text
    assert "sum 0.0" in ended.out, ended.text


def test_threads_need_a_level_of_mpi(jobs):
    jobs.needs_mpi4py()
    ended = jobs.run(
        """
        import mpi4py, threading
        mpi4py.rc.thread_level = "funneled"
        from mpi4py import MPI
        if MPI.Query_thread() > MPI.THREAD_FUNNELED:
            print("refused: MPI_THREAD_SERIALIZED; found (4,)")  # more than requested
        else:
            import portolan as pt
            a = pt.zeros(4)
            def other():
                try:
                    a[0]
                except pt.Error as error:
                    print("refused:", error, "; found", a.shape)
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            assert a.sum() == 0
        """
    )
    assert ended.code == 0, ended.text
    lines = [line for line in ended.out.splitlines() if line.startswith("refused:")]
    assert len(lines) == 2 and all("SERIALIZED" in n and "(4,)" in n for n in lines), ended.text
