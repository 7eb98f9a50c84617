# SPDX-License-Identifier: GPL-3.0-or-later
"""Free space, full containers, full hosts."""

import errno
import os
import random
import resource
import signal
import subprocess

from kit import *


def fill(path, piece=256 * KIB, limit=1024 * MIB):
    """Write until there is no space; (bytes synced, the error's name).

    Under write-back caching write(2) itself goes on for as long as the page
    cache takes it: the error comes with the next sync.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    data = [pattern(i, piece) for i in range(5)]
    synced, got = 0, "ok"
    try:
        for i in range(limit // piece):
            os.write(fd, data[i % 5])
            if i % 16 == 15:
                os.fsync(fd)
                synced = (i + 1) * piece
    except OSError as e:
        got = errno.errorcode[e.errno]
    late = error_of(os.fsync, fd)
    closed = error_of(os.close, fd)
    return synced, next((g for g in (got, late, closed) if g != "ok"), "ok")


def full_and_back(t, error="ENOSPC"):
    """Fill, see the rest intact, delete, write again; D04's body."""
    old = {}
    for i in range(10):
        data = pattern(i, 200_000 + i)
        write_file(f"{t.dir}/old-{i}", data, sync=True)
        old[f"old-{i}"] = data
    for round_ in range(3):
        written, got = fill(t.dir + "/big")
        equal(got, error, f"round {round_}: the writer's error")
        check(written > 2 * MIB, f"only {written} bytes fitted")
        t.alive("filling up")
        for name, data in old.items():
            check(read_file(f"{t.dir}/{name}") == data, f"{name} changed")
        st = os.statvfs(t.dir)
        check(st.f_bavail * st.f_frsize < 16 * MIB,
              f"full, and df tells {st.f_bavail * st.f_frsize} bytes free")
        if round_ == 0:     # fill it with small things to the last block
            for size, pause in ((300_000, 4), (3000, 50)):
                for i in range(100_000):
                    if error_of(write_file, f"{t.dir}/small-{size}-{i}",
                                b"s" * size, i % pause == 0) != "ok":
                        break
            for i in range(100_000):
                if error_of(os.mkdir, f"{t.dir}/folder-{i}") != "ok":
                    break
            run("sh", "-c", "rm -rf small-* folder-*", cwd=t.dir)
            t.alive("many small files")
        if round_ == 1:
            # The file shows what was written, short of nothing before that.
            t.remount()
            for name, data in old.items():
                check(read_file(f"{t.dir}/{name}") == data, f"{name} changed")
        os.unlink(t.dir + "/big")
        data = pattern("again", MIB)

        def again():
            got = error_of(write_file, t.dir + "/again", data, True)
            check(got in ("ok", error), f"writing again: {got}")
            return got == "ok"
        wait_until(again, 60, "writing works again after the deletion")
        drop_cached(t.dir + "/again")
        check(read_file(t.dir + "/again") == data, "other bytes come back")
        os.unlink(t.dir + "/again")
    t.remount()
    for name, data in old.items():
        check(read_file(f"{t.dir}/{name}") == data, f"{name} at the end")
    equal(sorted(os.listdir(t.dir)), sorted(old), "names at the end")


@test(every_scheme=True, timeout=600)
def d04_a_full_container(t):
    t.setup("--size", "96M")
    full_and_back(t)
    check(os.stat(t.container).st_size <= 96 * MIB, "larger than --size")


@test(timeout=600)
def d04_the_smallest_container_full(t):
    t.setup("--size", "32M")
    full_and_back(t)


@test(root=True, timeout=900)
def d04_a_full_host_ext4(t):
    host = loop_ext4(t, "host", 160 * MIB)
    t.container = host + "/c.tusk"
    t.setup()
    full_and_back(t)
    t.umount()
    t.check()
    t.container = t.path("none")
    run("umount", host)


@test(root=True, timeout=600)
def d04_a_full_host_tmpfs(t):
    host = small_tmpfs(t, "host", 120 * MIB)
    t.container = host + "/c.tusk"
    t.setup()
    full_and_back(t)
    t.umount()
    t.check()
    t.container = t.path("none")
    run("umount", host)


@test(root=True, timeout=600)
def td10_a_host_filled_by_others_between_two_commits(t):
    """Not a byte left, not even for our own metadata: what was accepted is
    kept, deletion and unmounting work."""
    host = loop_ext4(t, "host", 200 * MIB)
    t.container = host + "/c.tusk"
    t.setup()
    keep = pattern("keep", 4 * MIB)
    write_file(t.dir + "/keep", keep, sync=True)
    write_file(t.dir + "/victim", bytes(4 * MIB), sync=True)
    for i in range(200):            # in flight
        write_file(f"{t.dir}/loose-{i}", pattern(i, 3000))
    fd = os.open(host + "/filler", os.O_WRONLY | os.O_CREAT)
    while True:
        try:
            os.write(fd, bytes(65536))
        except OSError:
            break
    os.close(fd)
    t.alive("the host got full")
    os.unlink(t.dir + "/victim")
    for i in range(0, 200, 2):
        os.unlink(f"{t.dir}/loose-{i}")
    fsync_path(t.dir)
    written, got = fill(t.dir + "/big", limit=400 * MIB)
    equal(got, "ENOSPC", "a large file")
    os.unlink(t.dir + "/big")
    t.remount()
    check(read_file(t.dir + "/keep") == keep, "keep changed")
    for i in range(1, 200, 2):
        check(read_file(f"{t.dir}/loose-{i}") == pattern(i, 3000),
              f"loose-{i} changed")
    check(not os.path.exists(t.dir + "/victim"), "the victim is back")
    os.unlink(host + "/filler")
    write_file(t.dir + "/new", pattern("new", 8 * MIB), sync=True)
    t.umount()
    t.check()
    t.container = t.path("none")
    run("umount", host)


@test(timeout=300)
def d04_a_limit_on_file_size(t):
    """RLIMIT_FSIZE of the daemon: an error to the writer, no SIGXFSZ."""
    t.create()
    limit = 80 * MIB

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    t.mount(preexec=limited)
    os.mkdir(t.dir)
    write_file(t.dir + "/keep", pattern("keep", MIB), sync=True)
    written, got = fill(t.dir + "/big", limit=300 * MIB)
    check(got in ("ENOSPC", "EFBIG", "EDQUOT"), f"the writer got {got}")
    t.alive("the limit was reached")
    check(read_file(t.dir + "/keep") == pattern("keep", MIB), "keep changed")
    os.unlink(t.dir + "/big")
    t.umount()
    t.mount()
    check(read_file(t.dir + "/keep") == pattern("keep", MIB), "keep changed")
    write_file(t.dir + "/after", pattern("after", MIB), sync=True)


@test(timeout=300)
def d04_several_writers_fill_it_together(t):
    t.setup("--size", "64M")
    keep = pattern("keep", MIB)
    write_file(t.dir + "/keep", keep, sync=True)

    def writer(me):
        def go():
            for i in range(100_000):
                got = error_of(write_file, f"{t.dir}/{me}-{i}",
                               pattern(me, 30_000), i % 7 == 0)
                if got != "ok":
                    equal(got, "ENOSPC", "the error")
                    return
            raise Failure("it never got full")
        return go
    in_parallel(*[writer(i) for i in range(5)])
    t.alive("five writers filled it")
    check(read_file(t.dir + "/keep") == keep, "keep changed")
    t.remount()
    check(read_file(t.dir + "/keep") == keep, "keep after the remount")
    run("sh", "-c", "rm -f [0-9]-*", cwd=t.dir)
    wait_until(lambda: error_of(write_file, t.dir + "/new", keep, True)
               == "ok", 60, "writing works again")


@test()
def w15_overwriting_a_full_container_in_place_works(t):
    """Own blocks can be written anew when nothing else fits."""
    t.setup("--size", "64M")
    size = 4 * MIB
    write_file(t.dir + "/mine", bytes(size), sync=True)
    fill(t.dir + "/big")
    fd = os.open(t.dir + "/mine", os.O_RDWR)
    for at in range(0, size, 64 * KIB):
        os.pwrite(fd, pattern(at, 64 * KIB), at)
    os.fsync(fd)
    os.close(fd)
    t.remount()
    got = read_file(t.dir + "/mine")
    for at in range(0, size, 64 * KIB):
        check(got[at:at + 64 * KIB] == pattern(at, 64 * KIB), f"at {at}")


@test()
def p16_what_fallocate_promised_can_be_written(t):
    t.setup("--size", "96M")
    fd = os.open(t.dir + "/mine", os.O_RDWR | os.O_CREAT)
    size = 20 * MIB
    got = error_of(fallocate, fd, 0, 0, size)
    if got == "EOPNOTSUPP":
        os.close(fd)
        return
    equal(got, "ok", "fallocate")
    equal(os.fstat(fd).st_size, size, "size")
    fails_with("ENOSPC", fallocate, fd, 0, 0, 1 << 40)
    fill(t.dir + "/big")
    step = 4096 * 3
    for at in range(0, size, step):     # in an order that splits it up
        os.pwrite(fd, b"w" * 4096, at)
    for at in range(0, size - 12, 4096):
        os.pwrite(fd, b"%012d" % at, at)
    os.fsync(fd)
    os.close(fd)
    t.remount()
    got = read_file(t.dir + "/mine")
    equal(len(got), size, "size after the remount")
    for at in range(0, size - 12, 4096):
        equal(got[at:at + 12], b"%012d" % at, f"at {at}")


# --- df and du -------------------------------------------------------------

def used(t):
    st = os.statvfs(t.dir)
    return (st.f_blocks - st.f_bfree) * st.f_frsize


@test(every_scheme=True)
def p24_df_moves_with_the_data(t):
    t.setup()
    before = used(t)
    fd = os.open(t.dir + "/f", os.O_WRONLY | os.O_CREAT)
    for i in range(100):
        os.write(fd, pattern(i % 3, MIB))
    os.fsync(fd)
    os.close(fd)
    between((used(t) - before) / MIB, 95, 115, "MiB used by 100 MiB")
    run("df", t.dir)
    os.unlink(t.dir + "/f")

    def back():
        fsync_path(t.dir)
        return abs(used(t) - before) < 2 * MIB
    wait_until(back, 60, "used space went back")


@test(every_scheme=True)
def p24_du_and_statfs_tell_sane_numbers(t):
    t.setup()
    write_file(t.dir + "/1m", pattern("1m", MIB), sync=True)
    write_file(t.dir + "/1b", b"1", sync=True)
    write_file(t.dir + "/0", b"")
    between(int(run("du", "-s", "--block-size=1K", t.dir + "/1m").out
                .split()[0]), 1024, 1100, "du of 1 MiB in KiB")
    between(os.stat(t.dir + "/1b").st_blocks, 1, 64, "blocks of one byte")
    equal(os.stat(t.dir + "/0").st_blocks, 0, "blocks of nothing")
    before = {n: os.stat(f"{t.dir}/{n}").st_blocks for n in ("1m", "1b")}
    equal(os.stat(t.dir + "/1m").st_blksize % 4096, 0, "st_blksize")
    st = os.statvfs(t.dir)
    equal((st.f_bsize % 4096, st.f_frsize, st.f_namemax), (0, 4096, 255),
          "bsize, frsize, namemax")
    check(0 <= st.f_bavail <= st.f_bfree <= st.f_blocks, f"counts: {st}")
    check(st.f_files >= st.f_ffree > 1000, f"inodes: {st}")
    fsid = st.f_fsid
    t.remount()
    equal({n: os.stat(f"{t.dir}/{n}").st_blocks for n in before}, before,
          "blocks after the remount")
    equal(os.statvfs(t.dir).f_fsid, fsid, "fsid after the remount")


@test(root=True)
def p24_free_is_never_more_than_the_host_has(t):
    host = loop_ext4(t, "host", 300 * MIB)
    t.container = host + "/c.tusk"
    t.setup()
    for i in range(4):
        ours, theirs = os.statvfs(t.dir), os.statvfs(host)
        backed = os.stat(t.container).st_blocks * 512
        check(ours.f_bavail * ours.f_frsize <=
              theirs.f_bavail * theirs.f_frsize + backed,
              f"we say {ours.f_bavail * 4096}, the host "
              f"{theirs.f_bavail * theirs.f_frsize} (and {backed} ours)")
        check(ours.f_bavail * ours.f_frsize < 300 * MIB, "more than the disk")
        write_file(f"{t.dir}/{i}", pattern(i, 20 * MIB), sync=True)
    # What df promises can be written.
    promised = os.statvfs(t.dir).f_bavail * 4096
    fd = os.open(t.dir + "/promised", os.O_WRONLY | os.O_CREAT)
    for at in range(0, promised * 9 // 10, MIB):
        os.write(fd, pattern(at % 7, MIB))
    os.fsync(fd)
    os.close(fd)
    t.umount()
    t.container = t.path("none")
    run("umount", host)


@test()
def p24_sixteen_tebibytes_give_no_wrapped_numbers(t):
    t.setup("--size", "16T")
    st = os.statvfs(t.dir)
    check(0 < st.f_bavail <= st.f_bfree <= st.f_blocks <= 1 << 33,
          f"blocks {st.f_blocks}, free {st.f_bfree}, avail {st.f_bavail}")
    host = os.statvfs(t.top)
    # The host keeps some for root.
    free = host.f_bfree if t.is_root else host.f_bavail
    check(st.f_bavail * 4096 <= free * host.f_frsize + 500 * MIB,
          "free exceeds what the host has")
    between(os.stat(t.container).st_blocks * 512, MIB, 600 * MIB,
            "bytes the new container takes on the host")
    write_file(t.dir + "/f", b"x", sync=True)
