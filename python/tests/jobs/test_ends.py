"""How jobs end: normally, by exceptions, by signals, with live objects."""

import os
import signal

import pytest


def test_an_uncaught_exception_ends_the_job(jobs):
    ended = jobs.run(
        """
        import portolan as pt
        if pt.rank() == 1:
            raise ZeroDivisionError("of rank 1")
        pt.barrier()
        """
    )
    assert ended.code != 0
    assert "Traceback" in ended.err and "ZeroDivisionError: of rank 1" in ended.err
    assert "rank 1 of 2" in ended.err


def test_an_error_names_the_array_and_the_index(jobs):
    ended = jobs.run(
        """
        import portolan as pt
        a = pt.zeros((3, 3), name="plate")
        a[3, 0] = 1
        """
    )
    assert ended.code != 0
    assert 'IndexError: array "plate"' in ended.err and "index 3 is out of bounds" in ended.err


def test_live_objects_do_not_disturb_the_end(jobs):
    ended = jobs.run(
        """
        import atexit
        # Runs after the end of the runtime.
        atexit.register(lambda: print("sum", kept.sum()))
        import numpy as np, portolan as pt
        a = pt.ones((100, 100))
        b = pt.ones((10, 10))
        access = b.access()
        kept = access.local
        get = a.start_get(np.s_[1:5])
        tiles = iter(a.tiles((50, 50)))
        next(tiles)
        counter, mutex, group = pt.Counter(), pt.Mutex(), pt.world.subgroup([pt.rank()])
        """
    )
    assert ended.code == 0, ended.text
    assert ended.out.count("sum 50.0") == 2, ended.text


def test_calls_after_the_end_are_refused(jobs):
    ended = jobs.run(
        """
        import atexit
        def late():
            for call in (lambda: a[0], lambda: pt.zeros(3), pt.barrier):
                try:
                    call()
                except pt.Error as error:
                    print("refused:", error)
            print("known:", pt.rank() < pt.size() == 2, a.shape, a.dtype, a.name)
        atexit.register(late)
        import portolan as pt
        a = pt.ones(4)
        """
    )
    assert ended.code == 0, ended.text
    assert ended.out.count("refused: portolan has ended") == 6, ended.text
    assert ended.out.count("known: True (4,) float64 unnamed") == 2, ended.text


WAITS = """
    import os, signal, time
    import portolan as pt
    a, mutex = pt.zeros(4), pt.Mutex()
    if pt.rank() == 0:
        mutex.acquire()
    pt.barrier()
    if pt.rank() == 1:
        with open("pid.tmp", "w") as file:
            file.write(f"{os.getpid()}\\n")
        os.rename("pid.tmp", "pid")
        %s
    else:
        time.sleep(100)
"""


def interrupt(jobs, wait, program=WAITS, n=2):
    process = jobs.start(program % wait, n)
    pid = int(jobs.file("pid"))
    import time

    time.sleep(0.5)
    os.kill(pid, signal.SIGINT)
    return jobs.end(process, deadline=30)


def test_ctrl_c_interrupts_a_barrier(jobs):
    ended = interrupt(jobs, "pt.barrier()")
    assert ended.code != 0 and "KeyboardInterrupt" in ended.err and "program.py" in ended.err


def test_queries_work_after_an_interrupt(jobs):
    wait = """
        try:
            a.sync()
        finally:
            print("known:", pt.rank(), a.shape, repr(a), flush=True)
            print("more:", pt.world.size, pt.world.members, a.bounds(0), a.owner(0), flush=True)
        """
    ended = interrupt(jobs, wait.strip())
    assert ended.code != 0 and "KeyboardInterrupt" in ended.err, ended.text
    assert "known: 1 (4,) <portolan.Array" in ended.out, ended.text
    assert "more: 2 [0, 1] (slice(0, 2, 1),) 0" in ended.out, ended.text


def test_ctrl_c_interrupts_other_waits(jobs):
    ended = interrupt(jobs, "a.access()")
    assert ended.code != 0 and "KeyboardInterrupt" in ended.err


def test_ctrl_c_interrupts_whole_array_functions(jobs):
    for wait in ("a += 1", "a.sum(axis=0)", "a.astype(int)", "a.update_ghosts()"):
        (jobs.folder / "pid").unlink(missing_ok=True)
        ended = interrupt(jobs, wait)
        assert ended.code != 0 and "KeyboardInterrupt" in ended.err, wait
        assert "portolan.Error" not in ended.err, ended.err


def test_ctrl_c_interrupts_a_mutex(jobs):
    ended = interrupt(jobs, "mutex.acquire()")
    assert ended.code != 0 and "KeyboardInterrupt" in ended.err


def test_ctrl_c_interrupts_a_thread_that_waits_for_another_one(jobs):
    wait = (
        "import threading; threading.Thread(target=pt.barrier, daemon=True).start(); time.sleep(0.2); a[0]"
    )
    ended = interrupt(jobs, wait)
    assert ended.code != 0 and "KeyboardInterrupt" in ended.err, ended.text


UPDATES = """
    import os, threading, time
    import portolan as pt
    group, ticks = pt.world.subgroup([0, 1]), [0]
    def tick():
        while True:
            ticks[0] += 1
            time.sleep(0.001)
    if group is not None:
        a, b = pt.zeros(8, ghosts=1, group=group), pt.zeros(8, group=group)
        mine, its = a.access(), b.access()
        mine.start_update()
    if pt.rank() == 1:
        threading.Thread(target=tick, daemon=True).start()
        with open("pid.tmp", "w") as file:
            file.write(f"{os.getpid()}\\n")
        os.rename("pid.tmp", "pid")
        try:
            %s
        finally:
            print("ticks", ticks[0] > 20)
    else:
        time.sleep(100)
"""


@pytest.mark.parametrize(
    "wait",
    [
        "mine.local",
        "mine.padded",
        "mine.indices(0)",
        "mine.finish_update()",
        "mine.start_update()",
        "mine._stencil(its, print)",
        "mine.release()",
        "mine.__exit__(None, None, None)",
        "mine.__exit__(KeyError, None, None); a.sum()",
    ],
)
def test_ctrl_c_interrupts_an_update_of_ghost_cells(jobs, wait):
    # In a group that is smaller than the job, the end of an update waits for the other ranks.
    ended = interrupt(jobs, wait, program=UPDATES, n=3)
    assert ended.code != 0 and "KeyboardInterrupt" in ended.err, ended.text
    assert "panic" not in ended.err and "portolan.Error" not in ended.err, ended.err
    assert "ticks True" in ended.out, ended.text


def test_a_rank_that_was_interrupted_can_only_end(jobs):
    ended = interrupt(
        jobs,
        """
        try:
            pt.barrier()
        except KeyboardInterrupt:
            print("caught")
        try:
            a[0]
        except pt.Error as error:
            print("refused:", error)
        """.strip().replace("\n", "\n"),
    )
    assert "caught" in ended.out and "refused:" in ended.out and ended.code != 0, ended.text


def test_other_signals_run_their_handlers(jobs):
    ended = jobs.run(
        """
        import os, signal, threading, time
        import portolan as pt
        def handler(*_):
            try:
                pt.barrier()
            except pt.Error as error:
                print("handler:", error)
        signal.signal(signal.SIGUSR1, handler)
        if pt.rank() == 0:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        else:
            time.sleep(1.5)
        pt.barrier()
        print("done")
        """
    )
    assert ended.code == 0, ended.text
    assert "handler: another call" in ended.out and ended.out.count("done") == 2


def test_threads_run_while_a_rank_waits(jobs):
    ended = jobs.run(
        """
        import threading, time
        import portolan as pt
        ticks, stop = [0], threading.Event()
        def tick():
            while not stop.is_set():
                ticks[0] += 1
                time.sleep(0.001)
        thread = threading.Thread(target=tick)
        if pt.rank() == 0:
            thread.start()
            before = ticks[0]
            pt.barrier()
            print("ticks", ticks[0] - before > 50)
            stop.set()
        else:
            time.sleep(1)
            pt.barrier()
        """
    )
    assert ended.code == 0 and "ticks True" in ended.out, ended.text


def test_a_killed_rank_ends_the_job(jobs):
    ended = jobs.run(
        """
        import os, signal
        import portolan as pt
        if pt.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        pt.barrier()
        """
    )
    assert ended.code != 0


def test_children(jobs):
    ended = jobs.run(
        """
        import subprocess, sys, os
        import portolan as pt
        out = subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True)
        print(out.stdout.strip())
        pid = os.fork()
        if pid == 0:
            try:
                pt.barrier()
            except pt.Error as error:
                print("forked:", error)
            os._exit(0)
        os.waitpid(pid, 0)
        pt.barrier()
        """
    )
    assert ended.code == 0 and ended.out.count("child") == 2, ended.text
    assert ended.out.count("forked:") == 2, ended.text


def test_races_are_found_with_lines_of_python(jobs):
    ended = jobs.run(
        """
        import portolan as pt
        a = pt.zeros(4, name="raced")
        a[1] = pt.rank()  # the race
        a.sync()
        """,
        PORTOLAN_CHECK="1",
    )
    assert ended.code != 0 and "raced" in ended.err and "a race" in ended.err, ended.text
    assert "program.py:4" in ended.err
