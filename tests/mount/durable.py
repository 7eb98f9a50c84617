# SPDX-License-Identifier: GPL-3.0-or-later
"""What is still there after kill -9, after signals, and in copies of the
container that were taken while it was in use."""

import os
import random
import shutil
import signal
import subprocess
import time

from kit import *


@test(every_scheme=True)
def d03_synced_data_survives_kill_9(t):
    t.setup()
    want = {}
    for i, size in enumerate([0, 1, 100, 4096, 5000, 70_000, 3 * MIB + 1]):
        name = f"synced-{i}"
        want[name] = pattern(name, size)
        write_file(f"{t.dir}/{name}", want[name], sync=True)
    os.makedirs(t.dir + "/a/b/c")
    write_file(t.dir + "/a/b/c/f", b"deep", sync=True)
    for folder in ("/a/b/c", "/a/b", "/a", ""):
        fsync_path(t.dir + folder)
    for i in range(50):     # and what is not synced must do no harm
        write_file(f"{t.dir}/loose-{i}", pattern(i, 50_000))
    t.crash()
    for name, data in want.items():
        check(read_file(f"{t.dir}/{name}") == data, f"{name} changed")
    equal(read_file(t.dir + "/a/b/c/f"), b"deep", "a synced file below")
    for name in os.listdir(t.dir):
        if name.startswith("loose-"):
            read_file(f"{t.dir}/{name}")


@test()
def d03_each_fsync_holds_by_itself(t):
    """Kill right after the fsync returned; twenty times in one container."""
    t.setup()
    rng = random.Random(3)
    for i in range(20):
        path = f"{t.dir}/{i}"
        action = rng.randrange(4)
        if action == 0:
            write_file(path, pattern(i, 10_000), sync=True)
        elif action == 1:       # written, renamed, then synced
            write_file(path + ".tmp", pattern(i, 10_000), sync=True)
            os.rename(path + ".tmp", path)
        elif action == 2:       # in pieces
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
            for at in range(0, 10_000, 1000):
                os.pwrite(fd, pattern(i, 10_000)[at:at + 1000], at)
            os.fdatasync(fd)
            os.close(fd)
        else:                   # by O_SYNC
            fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_SYNC)
            os.write(fd, pattern(i, 10_000))
            os.close(fd)
        fsync_path(t.dir)
        t.crash()
        for j in range(i + 1):
            check(read_file(f"{t.dir}/{j}") == pattern(j, 10_000),
                  f"file {j} after kill {i}")
    t.umount()
    t.check()


@test(timeout=300)
def d03_saved_by_rename_is_old_or_new_after_kill_9(t):
    t.setup()
    path = t.dir + "/document"
    rng = random.Random(8)
    size = 300_000

    def version(k):
        return b"version %06d\n" % k + pattern(k, size)

    write_file(path, version(0), sync=True)
    fsync_path(t.dir)
    k = 0
    for round_ in range(8):
        pipe, into = os.pipe()
        saver = os.fork()
        if saver == 0:
            os.close(pipe)
            try:
                n = k
                while True:
                    n += 1
                    synced = n % 2 == 0
                    write_file(path + ".tmp", version(n), sync=synced)
                    os.rename(path + ".tmp", path)
                    if synced:
                        fsync_path(t.dir)
                        os.write(into, b"%d\n" % n)
            except OSError:
                pass
            os._exit(0)
        os.close(into)
        time.sleep(rng.uniform(0.05, 0.4))      # a moment of no meaning
        t.kill()
        os.waitpid(saver, 0)
        with open(pipe, "rb") as f:
            acknowledged = [int(x) for x in f.read().split()]
        t.tusk("umount", t.point)
        t.mount()
        got = read_file(path)
        k2 = int(got[8:14])
        check(got == version(k2), f"round {round_}: half a version "
              f"({len(got)} bytes)")
        least = acknowledged[-1] if acknowledged else k
        check(k2 >= least, f"round {round_}: version {k2} is there, {least} "
              "was synced")
        k = k2


@test(timeout=300)
def d01_copies_taken_at_random_moments_open_clean(t):
    """Not what a power cut leaves (a copy takes time), but what people back
    up: opening it must work, or say that it is damaged, and never crash."""
    t.setup()
    stop = t.path("stop")

    def work():
        rng = random.Random(6)
        i = 0
        while not os.path.exists(stop):
            i += 1
            write_file(f"{t.dir}/{i % 40}", pattern(i, rng.randrange(90_000)),
                       sync=i % 5 == 0)
            if i % 3 == 0:
                os.rename(f"{t.dir}/{i % 40}", f"{t.dir}/r{i % 7}")
    worker = os.fork()
    if worker == 0:
        try:
            work()
        finally:
            os._exit(0)
    copies = []
    for i in range(6):
        time.sleep(0.2)
        copies.append(t.path(f"copy-{i}"))
        run("cp", "--sparse=always", t.container, copies[-1])
    write_file(stop, b"")
    os.waitpid(worker, 0)
    t.umount()
    for copy in copies:
        done = t.try_mount(container=copy, expect=(0, 4))
        if done.returncode == 0:
            for name in os.listdir(t.dir):
                error_of(read_file, f"{t.dir}/{name}")
            t.tusk("umount", t.point)
        t.check(container=copy, expect=(0, 4))


@test()
def d01_kill_9_at_any_moment_leaves_a_clean_container(t):
    """Every opening after a kill works, and check finds nothing."""
    t.setup()
    rng = random.Random(12)
    for round_ in range(12):
        worker = os.fork()
        if worker == 0:
            try:
                own = random.Random(round_)
                for i in range(1_000_000):
                    d = f"{t.dir}/d{own.randrange(5)}"
                    os.makedirs(d, exist_ok=True)
                    action = own.randrange(6)
                    f, g = (f"{d}/{own.randrange(12)}" for _ in "xy")
                    try:
                        if action < 2:
                            write_file(f, own.randbytes(
                                own.choice([10, 5000, 200_000])),
                                sync=own.random() < .1)
                        elif action == 2:
                            os.rename(f, g)
                        elif action == 3:
                            os.unlink(f)
                        elif action == 4:
                            os.link(f, g)
                        else:
                            shutil.rmtree(d)
                    except (FileNotFoundError, FileExistsError):
                        pass
            except OSError:
                pass
            os._exit(0)
        time.sleep(rng.uniform(0.05, 0.5))      # a moment of no meaning
        t.kill()
        os.waitpid(worker, 0)
        t.tusk("umount", t.point)
        t.check()
        t.mount()
        tree(t.dir)     # all can be read


# --- signals ---------------------------------------------------------------

@test(every_scheme=True)
def d09_sigterm_right_after_writing_loses_nothing(t):
    t.setup()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        path = f"{t.dir}/{int(number)}"
        data = pattern(int(number), 5 * MIB + 7)
        write_file(path, data)
        daemon = t.daemon
        os.kill(daemon, number)
        t.ended(daemon, 0)
        equal(mount_points(t.top), [], f"mounts after {number.name}")
        t.mount()
        check(read_file(path) == data, f"{number.name} lost data")


@test()
def w21_sigterm_with_an_open_file_keeps_what_was_written(t):
    t.setup()
    data = pattern("open", 3 * MIB)
    fd = os.open(t.dir + "/f", os.O_RDWR | os.O_CREAT)
    os.write(fd, data)
    daemon = t.daemon
    os.kill(daemon, signal.SIGTERM)
    wait_until(lambda: not mount_points(t.top), 60, "the mount goes away")
    got = error_of(os.close, fd)
    check(got in ("ok", "ENOTCONN", "EIO"), f"close: {got}")
    t.ended(daemon, 0)
    t.mount()
    check(read_file(t.dir + "/f") == data, "the data is not all there")


@test()
def d09_a_mapped_file_and_a_current_folder_at_sigterm(t):
    import mmap
    t.setup()
    write_file(t.dir + "/f", bytes(100_000))
    with open(t.dir + "/f", "r+b") as f:
        m = mmap.mmap(f.fileno(), 0)
    m[50_000:50_005] = b"dirty"
    os.chdir(t.dir)
    daemon = t.daemon
    os.kill(daemon, signal.SIGTERM)
    wait_until(lambda: not mount_points(t.top), 60, "the mount goes away")
    os.chdir("/")
    m.close()
    t.ended(daemon, 0)
    t.mount()
    equal(read_file(t.dir + "/f")[50_000:50_005], b"dirty", "mapped bytes")


@test()
def d09_two_signals_in_a_row_are_one(t):
    t.setup()
    data = pattern("twice", 8 * MIB)
    write_file(t.dir + "/f", data)
    daemon = t.daemon
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT,
                   signal.SIGHUP):
        os.kill(daemon, number)
    t.ended(daemon, 0)
    t.mount()
    check(read_file(t.dir + "/f") == data, "data is lost")


@test(threads=True)
def d09_sigterm_while_several_write(t):
    """Whatever a writer was told is written is there."""
    t.setup()

    def writer(me):
        def go():
            done = 0
            try:
                for i in range(100_000):
                    write_file(f"{t.dir}/{me}-{i}", pattern(i, 20_000))
                    done = i + 1
            except OSError:
                pass
            write_file(t.path(f"done-{me}"), b"%d" % done)
        return go

    pids = []
    for me in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                writer(me)()
            finally:
                os._exit(0)
        pids.append(pid)
    time.sleep(0.7)         # a moment of no meaning
    daemon = t.daemon
    os.kill(daemon, signal.SIGTERM)
    for pid in pids:
        os.waitpid(pid, 0)
    t.ended(daemon, 0)
    wait_until(lambda: not mount_points(t.top), 60, "the mount goes away")
    t.mount()
    for me in range(3):
        n = int(read_file(t.path(f"done-{me}")))
        check(n > 0, "nothing was written before the signal")
        # A file closed while the mount was being taken away may be lost with
        # its writer; the ones before it must be there.
        for i in range(n - 1):
            check(read_file(f"{t.dir}/{me}-{i}") == pattern(i, 20_000),
                  f"file {me}-{i} of {n}")
    # What was written to the empty folder below, after the unmount.
    t.umount()
    shutil.rmtree(t.point, ignore_errors=True)
    os.makedirs(t.point, exist_ok=True)


@test()
def the_timer_commits_without_any_fsync(t):
    t.mount_options = ["-o", "commit=1"]
    t.setup()
    write_file(t.dir + "/f", b"x" * 10_000)
    drop = os.open(t.dir + "/f", os.O_RDONLY)
    run("sync", "-f", t.dir)        # to the daemon; no durability promised
    os.close(drop)

    def there():
        copy = t.path("copy")
        run("cp", "--sparse=always", t.container, copy)
        os.makedirs(t.path("m2"), exist_ok=True)
        done = t.try_mount("--ro", container=copy, point=t.path("m2"))
        if done.returncode:
            return False
        try:
            return os.path.exists(t.path("m2/work/f")) and \
                read_file(t.path("m2/work/f")) == b"x" * 10_000
        finally:
            t.tusk("umount", t.path("m2"))
    wait_until(there, 60, "the file is in a copy of the container")


@test()
def m05_clients_of_a_killed_daemon_get_an_error(t):
    t.setup()
    fd = os.open(t.dir + "/f", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x")
    t.kill()
    for call in ((os.stat, t.dir), (os.listdir, t.point),
                 (os.fsync, fd)):
        fails_with("ENOTCONN ECONNABORTED EIO", *call)
    error_of(os.close, fd)
    t.tusk("umount", t.point)
    equal(mount_points(t.top), [], "mounts")


@test()
def k04_a_lost_header_copy_is_mended_at_the_next_mount(t):
    for start in (0, 16 * MIB):
        t.container = t.path(f"c-{start}.tusk")
        t.setup()
        write_file(t.dir + "/f", pattern(start, 70_000), sync=True)
        t.umount()
        with open(t.container, "r+b") as f:
            f.seek(start)
            f.write(bytes(MIB))
        t.check(expect=4)
        t.mount()
        check(read_file(t.dir + "/f") == pattern(start, 70_000), "the file")
        t.umount()
        t.check()
