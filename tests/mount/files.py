# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file holds: bytes, sizes, holes, times, modes, attributes."""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import shutil
import signal
import stat
import subprocess
import time

from kit import *

NOBODY = 65534


# --- bytes -----------------------------------------------------------------

@test(every_scheme=True, folder=True)
def bytes_written_are_read_back_after_a_remount(t):
    t.setup()
    sizes = [0, 1, 15, 16, 17, 511, 512, 513, 4095, 4096, 4097, 65535, 65536,
             65537, 262_143, 262_145, MIB, 5 * MIB + 3]
    for size in sizes:
        write_file(f"{t.dir}/{size}", pattern("a", size))
    t.remount()
    for size in sizes:
        equal(os.stat(f"{t.dir}/{size}").st_size, size, "size")
        check(read_file(f"{t.dir}/{size}") == pattern("a", size),
              f"the file of {size} bytes changed")


@test(every_scheme=True, folder=True)
def a_tree_is_the_same_after_a_remount(t):
    t.setup()
    make_tree(t.dir + "/tree", files=150)
    before = tree(t.dir, inodes=True)
    t.remount()
    same_tree(tree(t.dir, inodes=True), before, "after the remount")
    t.remount()
    same_tree(tree(t.dir, inodes=True), before, "after the second remount")


@test(folder=True)
def random_writes_at_odd_offsets_agree_with_memory(t):
    t.setup()
    rng, image = random.Random(2), bytearray(700_000)
    fd = os.open(t.dir + "/f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, len(image))
    for i in range(1500):
        at = rng.randrange(len(image))
        data = rng.randbytes(min(rng.choice([1, 100, 5000, 40_000]),
                                 len(image) - at))
        equal(os.pwrite(fd, data, at), len(data), "pwrite")
        image[at:at + len(data)] = data
        if i % 100 == 0:
            drop_cached(t.dir + "/f")
            check(os.pread(fd, len(image), 0) == image, f"step {i} differs")
    os.close(fd)
    t.remount()
    check(read_file(t.dir + "/f") == image, "after the remount it differs")


@test(folder=True)
def reads_at_and_past_the_end_are_short(t):
    t.setup()
    write_file(t.dir + "/f", b"x" * 5000)
    t.remount()
    fd = os.open(t.dir + "/f", os.O_RDONLY)
    equal(len(os.pread(fd, 100, 4990)), 10, "bytes over the end")
    equal(os.pread(fd, 100, 5000), b"", "at the end")
    equal(os.pread(fd, 100, 1 << 40), b"", "far past the end")
    os.close(fd)


@test(folder=True)
def writing_past_the_end_leaves_zeros(t):
    t.setup()
    with open(t.dir + "/f", "wb") as f:
        f.write(b"abc")
        f.seek(10_000)
        f.write(b"def")
    t.remount()
    equal(read_file(t.dir + "/f"), b"abc" + bytes(9997) + b"def", "content")


@test(folder=True, threads=True)
def o_append_of_several_processes_loses_no_line(t):
    t.setup()
    path, lines, writers = t.dir + "/log", 1500, 4

    def writer(me):
        def go():
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for i in range(lines):
                os.write(fd, f"{me} {i}\n".encode())
            os.close(fd)
        return go

    in_parallel(*[writer(i) for i in range(writers)])
    t.remount()
    got = read_file(path).decode().splitlines()
    equal(len(got), lines * writers, "lines")
    equal(sorted(got), sorted(f"{w} {i}" for w in range(writers)
                              for i in range(lines)), "lines")
    for w in range(writers):
        mine = [line for line in got if line.startswith(f"{w} ")]
        equal(mine, [f"{w} {i}" for i in range(lines)], "their order")


@test(folder=True)
def w01_o_trunc_removes_the_old_bytes_for_good(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"o" * 10_000, sync=True)
    drop_cached(path)
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
    equal(os.stat(path).st_size, 0, "size at once")
    t.remount()
    equal(read_file(path), b"", "after the remount")
    write_file(path, b"n" * 100)
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.pwrite(fd, b"x", 50)
    os.close(fd)
    drop_cached(path)
    equal(read_file(path), bytes(50) + b"x", "after truncation and a write")


@test(folder=True)
def o_direct_reads_and_writes(t):
    t.setup()
    path, size = t.dir + "/f", 1 * MIB
    page = mmap.mmap(-1, size)
    data = pattern("direct", size)
    page.write(data)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    equal(os.pwritev(fd, [page], 0), size, "direct write")
    check(read_file(path) == data, "buffered read after a direct write")
    into = mmap.mmap(-1, size)
    equal(os.preadv(fd, [into], 0), size, "direct read")
    check(into[:] == data, "direct read gives other bytes")
    with open(path, "r+b") as f:        # buffered, then direct
        f.seek(8192)
        f.write(b"B" * 4096)
    equal(os.preadv(fd, [into], 0), size, "direct read after a buffered write")
    equal(into[8192:12288], b"B" * 4096, "the buffered bytes")
    os.close(fd)
    t.remount()
    equal(read_file(path)[8192:8200], b"B" * 8, "after the remount")


@test(folder=True, every_scheme=True, threads=True)
def td6_direct_writes_of_512_bytes_side_by_side(t):
    """Two pieces of one block written at the same time must both be there."""
    t.setup()
    path, blocks = t.dir + "/f", 24
    with open(path, "wb") as f:
        f.truncate(blocks * 4096)

    def writer(piece):
        def go():
            page = mmap.mmap(-1, 4096)
            fd = os.open(path, os.O_RDWR | os.O_DIRECT)
            for block in range(blocks):
                page[:512] = bytes([piece * 16 + block % 16]) * 512
                try:
                    os.pwritev(fd, [memoryview(page)[:512]],
                               block * 4096 + piece * 512)
                except OSError as e:
                    if e.errno == errno.EINVAL and t.on:
                        os._exit(0)     # this folder wants larger pieces
                    raise
            os.close(fd)
        return go

    in_parallel(*[writer(i) for i in range(8)])
    t.remount()
    got = read_file(path)
    if t.on and got == bytes(blocks * 4096):
        raise Skip("this folder wants larger direct writes")
    for block in range(blocks):
        for piece in range(8):
            at = block * 4096 + piece * 512
            equal(got[at:at + 512], bytes([piece * 16 + block % 16]) * 512,
                  f"block {block} piece {piece}")


# --- mmap ------------------------------------------------------------------

@test(folder=True)
def p22_shared_mmap_writes_are_seen_by_others_and_kept(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, bytes(3 * 4096 + 10))
    with open(path, "r+b") as f:
        with mmap.mmap(f.fileno(), 0) as m:
            m[0:5] = b"first"
            m[4094:4100] = b"across"
            m[-4:] = b"last"
            m.flush()
            seen = run("od", "-An", "-c", "-N5", path).out.split()
            equal(seen, list("first"), "another process reads")
            m[8192:8198] = b"later!"
    t.remount()
    got = read_file(path)
    equal(len(got), 3 * 4096 + 10, "size")
    equal((got[:5], got[4094:4100], got[8192:8198], got[-4:]),
          (b"first", b"across", b"later!", b"last"), "after the remount")


@test(folder=True)
def p22_mmap_sees_writes_of_others(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, bytes(8192))
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        equal(m[100:104], bytes(4), "before")
        run("sh", "-c", 'printf new! | dd of="$1" bs=1 seek=100 conv=notrunc '
            '2>/dev/null', "sh", path)
        equal(m[100:104], b"new!", "after another process wrote")


@test(folder=True)
def mmap_beyond_the_end_of_the_last_page_reads_zeros(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"y" * 6000, sync=True)
    os.truncate(path, 5000)
    t.remount()
    fd = os.open(path, os.O_RDWR)
    at = map_shared(fd, 8192)
    equal(ctypes.string_at(at + 5000, 3192), bytes(3192), "past the end")
    ctypes.memmove(at + 5000, b"junk", 4)   # in the page, not in the file
    ctypes.memmove(at + 4996, b"kept", 4)
    LIBC.munmap(ctypes.c_void_p(at), ctypes.c_size_t(8192))
    os.close(fd)
    t.remount()
    equal(read_file(path), b"y" * 4996 + b"kept", "the file")
    os.truncate(path, 8192)
    t.remount()
    equal(read_file(path)[5000:], bytes(3192), "the file made longer")


def map_shared(fd, length):
    """Unlike Python's mmap: may reach over the end of the file."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                          ctypes.c_int, ctypes.c_int, ctypes.c_int64]
    at = LIBC.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE,
                   mmap.MAP_SHARED, fd, 0)
    check(at != ctypes.c_void_p(-1).value, "mmap failed")
    return at


@test(folder=True)
def w06_mtime_moves_with_a_mapped_write(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, bytes(4096), sync=True)
    os.utime(path, (1000, 1000))
    with open(path, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        m[0:1] = b"x"
        m.flush()
        os.fsync(f.fileno())
    t.remount()
    check(os.stat(path).st_mtime > 1_600_000_000, "mtime is still 1000")


@test(folder=True)
def a_program_runs_from_here_and_may_be_unlinked_meanwhile(t):
    t.setup()
    path = t.dir + "/sleep"
    shutil.copy("/bin/sleep", path)
    t.remount()
    run(path, "0")
    running = subprocess.Popen([path, "1000"])
    wait_until(lambda: os.readlink(f"/proc/{running.pid}/exe") == path)
    fails_with("ETXTBSY", os.open, path, os.O_WRONLY)
    os.unlink(path)
    equal(running.poll(), None, "the program after the unlink")
    running.terminate()
    equal(running.wait(), -signal.SIGTERM, "its end")


# --- truncation and holes --------------------------------------------------

INTERESTING = [0, 1, 15, 16, 17, 511, 512, 513, 4095, 4096, 4097, 8191, 8193,
               65535, 65536, 65537]


@test(every_scheme=True, folder=True, timeout=600)
def p07_random_truncates_and_writes_agree_with_a_plain_file(t):
    t.setup()
    steps = 10_000 if t.long or t.config.name == "aes-256-xts" else 2_500
    rng = random.Random(7)
    ours, theirs = t.dir + "/f", t.ref + "/f"
    for path in (ours, theirs):
        write_file(path, b"")
    for step in range(steps):
        size = max(0, rng.choice(INTERESTING) + rng.randint(-1, 1))
        action = rng.randrange(3)
        data = rng.randbytes(rng.choice([1, 16, 511, 513, 4096, 5000]))
        for path in (ours, theirs):
            fd = os.open(path, os.O_RDWR)
            if action == 0:
                os.ftruncate(fd, size)
            elif action == 1:
                os.pwrite(fd, data, size)
            else:
                os.pread(fd, 5000, size)
            os.close(fd)
        if step % 60 == 0:
            drop_cached(ours)
        if read_file(ours) != read_file(theirs):
            raise Failure(f"after step {step} (action {action}, size {size}, "
                          f"{len(data)} bytes) the files differ")
        if step % 1000 == 999:
            t.remount()
            check(read_file(ours) == read_file(theirs),
                  f"after the remount at step {step} the files differ")


@test(every_scheme=True, folder=True)
def p07_truncate_to_odd_sizes_keeps_the_prefix(t):
    t.setup()
    path = t.dir + "/f"
    for size in (10, 600, 4100, 70_001):
        data = pattern("odd", size)
        write_file(path, data)
        reader = os.open(path, os.O_RDONLY)
        for less in (2, 4, 7):
            os.truncate(path, size - less)
            drop_cached(path)
            equal(read_file(path), data[:size - less],
                  f"{size} less {less} bytes")
        os.truncate(path, size + 100)
        drop_cached(path)
        equal(os.pread(reader, size + 200, 0),
              data[:size - 7] + bytes(107), "grown again, by the reader")
        fails_with("EINVAL", os.ftruncate, reader, 5)
        os.close(reader)
        t.remount()
        equal(read_file(path), data[:size - 7] + bytes(107), "remounted")


@test(folder=True)
def td6_bytes_cut_off_do_not_come_back(t):
    t.setup()
    path = t.dir + "/f"
    for keep in (1, 100, 4095, 4097, 10_000):
        write_file(path, b"S" * 20_000, sync=True)
        os.truncate(path, keep)
        fsync_path(path)
        os.truncate(path, 20_000)
        drop_cached(path)
        equal(read_file(path), b"S" * keep + bytes(20_000 - keep),
              f"cut to {keep}")
        with open(path, "r+b") as f:
            f.seek(19_000)
            f.write(b"e")
        t.remount()
        equal(read_file(path)[keep:19_000], bytes(19_000 - keep),
              f"cut to {keep}, written behind, remounted")


@test(folder=True)
def sparse_files_use_no_space_and_tell_their_holes(t):
    t.setup()
    path = t.dir + "/f"
    with open(path, "wb") as f:
        f.truncate(64 * MIB)
        f.seek(16 * MIB)
        f.write(b"d" * 65536)
    t.remount()
    st = os.stat(path)
    equal(st.st_size, 64 * MIB, "size")
    between(st.st_blocks * 512, 65536, MIB, "allocated bytes")
    fd = os.open(path, os.O_RDONLY)
    data = os.lseek(fd, 0, os.SEEK_DATA)
    hole = os.lseek(fd, data, os.SEEK_HOLE)
    between(data, 0, 16 * MIB, "start of data")
    between(hole, 16 * MIB + 65536, 64 * MIB, "end of data")
    between(hole - data, 65536, MIB, "length of data")
    equal(os.lseek(fd, 0, os.SEEK_HOLE), 0, "the first hole")
    fails_with("ENXIO", os.lseek, fd, 64 * MIB, os.SEEK_DATA)
    fails_with("ENXIO", os.lseek, fd, 40 * MIB, os.SEEK_DATA)
    equal(os.pread(fd, 4096, 10 * MIB), bytes(4096), "in the hole")
    equal(os.pread(fd, 4096, 16 * MIB), b"d" * 4096, "the data")
    os.close(fd)
    run("cp", "--sparse=always", path, t.dir + "/copy")
    equal(sha(t.dir + "/copy"), sha(path), "cp --sparse=always")


@test(folder=True)
def very_large_sparse_files(t):
    t.setup()
    path = t.dir + "/f"
    end = (1 << 43) if t.on else (1 << 62)      # ext4 ends at 16 TiB
    with open(path, "wb") as f:
        f.seek(end)
        f.write(b"far")
    t.remount()
    equal(os.stat(path).st_size, end + 3, "size")
    fd = os.open(path, os.O_RDONLY)
    equal(os.pread(fd, 10, end), b"far", "at the far end")
    equal(os.lseek(fd, 0, os.SEEK_DATA) // 4096, end // 4096, "SEEK_DATA")
    equal(os.pread(fd, 10, end // 2), bytes(10), "half way")
    os.close(fd)
    os.truncate(path, 10)
    equal(read_file(path), bytes(10), "cut again")


@test(folder=True)
def p16_fallocate_works_or_says_so(t):
    t.setup()
    path = t.dir + "/f"
    data = pattern("fallocate", 300_000)
    write_file(path, data, sync=True)
    fd = os.open(path, os.O_RDWR)
    image = bytearray(data)

    def step(mode, at, length, what):
        got = error_of(fallocate, fd, mode, at, length)
        if got not in ("ok", "EOPNOTSUPP"):
            raise Failure(f"{what}: {got}")
        return got == "ok"

    if step(0, 200_000, 200_001, "allocate"):
        image.extend(bytes(400_001 - len(image)))
    if step(FALLOC_KEEP_SIZE, 0, 600_000, "keep size"):
        equal(os.fstat(fd).st_size, len(image), "size kept")
        between(os.fstat(fd).st_blocks * 512, 590_000, 2_000_000,
                "allocated bytes")
    if step(FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 5_000, 70_003, "punch"):
        image[5_000:75_003] = bytes(70_003)
    if step(FALLOC_ZERO_RANGE, 99_999, 20_000, "zero"):
        image[99_999:119_999] = bytes(20_000)
    drop_cached(path)
    check(os.pread(fd, 1_000_000, 0) == image, "the bytes differ")
    os.pwrite(fd, b"in the punched", 50_001)
    image[50_001:50_015] = b"in the punched"
    os.close(fd)
    t.remount()
    check(read_file(path) == image, "after the remount the bytes differ")


# --- times -----------------------------------------------------------------

@test(folder=True)
def p04_touch_moves_what_it_says_and_nothing_else(t):
    t.setup()
    f = t.dir + "/f"
    run("touch", "-d", "2021-06-01 12:00:00.123456789", f)
    old = os.stat(f)
    equal(old.st_mtime_ns % 1_000_000_000, 123456789, "nanoseconds")
    run("touch", "-a", f)
    new = os.stat(f)
    equal(new.st_mtime_ns, old.st_mtime_ns, "mtime after touch -a")
    check(new.st_atime > old.st_atime, "atime did not move")
    check(new.st_ctime_ns >= old.st_ctime_ns, "ctime went back")
    os.utime(f, ns=(5_000_000_007, 6_000_000_009))
    run("touch", "-m", f)
    equal(os.stat(f).st_atime_ns, 5_000_000_007, "atime after touch -m")
    now = time.time()
    run("touch", f)
    st = os.stat(f)
    between(st.st_mtime, now - 2, now + 60, "mtime after touch")
    between(st.st_atime, now - 2, now + 60, "atime after touch")
    t.remount()
    equal(os.stat(f).st_mtime_ns, st.st_mtime_ns, "mtime after the remount")


@test(folder=True)
def times_of_any_year_to_the_nanosecond(t):
    t.setup()
    highest = 15_032_385_534 if t.on else 1 << 36     # where ext4 ends
    for i, second in enumerate([0, 1, -1, -2_000_000_000, 2_147_483_647,
                                2_147_483_648, 4_294_967_296, 7_258_118_400,
                                highest]):
        when = second * 1_000_000_000 + 123_456_789
        path = f"{t.dir}/{i}"
        write_file(path, b"")
        os.utime(path, ns=(when, when + 1))
    before = {n: os.stat(f"{t.dir}/{n}") for n in os.listdir(t.dir)}
    equal(before["3"].st_mtime_ns, -2_000_000_000 * 10**9 + 123_456_790,
          "a time in 1906")
    equal(before["8"].st_mtime_ns, highest * 10**9 + 123_456_790, "far ahead")
    t.remount()
    for name, st in before.items():
        now = os.stat(f"{t.dir}/{name}")
        equal((now.st_atime_ns, now.st_mtime_ns),
              (st.st_atime_ns, st.st_mtime_ns), f"times of {name}")


@test(folder=True)
def p06_times_and_owner_of_a_symlink_are_its_own(t):
    t.setup()
    target, live, dangling = (f"{t.dir}/{n}" for n in ("t", "l", "d"))
    write_file(target, b"x")
    os.utime(target, (77, 77))
    os.symlink("t", live)
    os.symlink("nowhere", dangling)
    for link in (live, dangling):
        run("touch", "-h", "-d", "@1000", link)
        equal(os.lstat(link).st_mtime, 1000, f"mtime of {link}")
        run("chown", "-h", f"{os.getuid()}:{os.getgid()}", link)
    equal(os.stat(target).st_mtime, 77, "mtime of the target")
    t.remount()
    equal([os.lstat(p).st_mtime for p in (live, dangling, target)],
          [1000, 1000, 77], "after the remount")


@test(folder=True)
def writing_moves_mtime_and_ctime_and_setting_times_lasts(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"1")
    os.utime(path, (1000, 1000))
    with open(path, "ab") as f:
        f.write(b"2")
    between(os.stat(path).st_mtime, time.time() - 100, time.time() + 2,
            "mtime after a write")
    # cp -p, rsync and tar: write, set the time, close
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b"w" * 9000)
    os.utime(fd, ns=(1_234_000_000_005, 1_234_000_000_006))
    os.close(fd)
    equal(os.stat(path).st_mtime_ns, 1_234_000_000_006, "after close")
    drop_cached(path)
    equal(os.stat(path).st_mtime_ns, 1_234_000_000_006, "written back")
    t.remount()
    equal(os.stat(path).st_mtime_ns, 1_234_000_000_006, "remounted")
    st = os.stat(path)
    os.chmod(path, 0o600)
    check(os.stat(path).st_ctime_ns > st.st_ctime_ns, "chmod: ctime stays")
    equal(os.stat(path).st_mtime_ns, st.st_mtime_ns, "chmod: mtime")


@test(folder=True)
def td8_times_of_overwritten_files_stay_as_they_were_shown(t):
    """What the kernel told programs is what a remount tells: make, git and
    rsync compare it."""
    t.setup()
    for i in range(100):
        path = f"{t.dir}/{i}"
        write_file(path, b"x" * 5000)
        time.sleep(0.002)
        write_file(path, b"y" * (6000 + i), sync=i % 3 == 0)
        if i % 4 == 0:
            os.rename(path, path + "r")
    shown = {n: os.stat(f"{t.dir}/{n}") for n in os.listdir(t.dir)}
    t.remount()
    wrong = [n for n, st in shown.items()
             if os.stat(f"{t.dir}/{n}").st_mtime_ns != st.st_mtime_ns]
    equal(len(wrong), 0, "files with another mtime after the remount")
    wrong = [n for n, st in shown.items()
             if os.stat(f"{t.dir}/{n}").st_ctime_ns != st.st_ctime_ns]
    equal(len(wrong), 0, "files with another ctime after the remount")


@test(folder=True)
def folders_change_their_times_with_their_entries(t):
    t.setup()
    d = t.dir + "/d"
    os.mkdir(d)
    for what, action in [
            ("create", lambda: write_file(d + "/a", b"")),
            ("link", lambda: os.link(d + "/a", d + "/b")),
            ("rename", lambda: os.rename(d + "/b", d + "/c")),
            ("unlink", lambda: os.unlink(d + "/c")),
            ("mkdir", lambda: os.mkdir(d + "/s")),
            ("symlink", lambda: os.symlink("x", d + "/y")),
            ("rmdir", lambda: os.rmdir(d + "/s"))]:
        os.utime(d, (1000, 1000))
        old = os.stat(d).st_ctime_ns
        action()
        st = os.stat(d)
        check(st.st_mtime > 1000, f"{what} left the folder's mtime")
        check(st.st_ctime_ns >= old, f"{what}: ctime went back")


@test(folder=True)
def atime_moves_by_relatime(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"x" * 10)
    os.utime(path, (1000, 2000))
    t.remount()
    read_file(path)
    check(os.stat(path).st_atime > 2000, "a read left an old atime")


# --- attributes ------------------------------------------------------------

@test(folder=True)
def p11_xattrs_behave_as_on_a_plain_folder(t):
    t.setup()
    for top in (t.dir, t.ref):
        write_file(top + "/f", b"x")
        os.mkdir(top + "/d")
        os.symlink("f", top + "/l")
    create, replace = os.XATTR_CREATE, os.XATTR_REPLACE
    steps = [
        ("f", "set", "user.a", b"1", 0), ("f", "set", "user.a", b"22", create),
        ("f", "set", "user.b", b"", create),
        ("f", "set", "user.no", b"1", replace),
        ("f", "set", "user.a", b"333", replace), ("f", "get", "user.a"),
        ("f", "get", "user.b"), ("f", "get", "user.missing"),
        ("f", "set", "user." + "n" * 250, b"long name", 0),
        ("f", "get", "user." + "n" * 250),
        ("f", "set", "user." + "n" * 251, b"too long", 0),
        ("f", "set", "user.", b"no name", 0),
        ("f", "set", "nonsense.a", b"1", 0),
        ("f", "set", "user.bin", bytes(range(256)), 0),
        ("f", "get", "user.bin"), ("f", "set", "user.2k", b"k" * 2048, 0),
        ("f", "get", "user.2k"), ("f", "del", "user.2k"),
        ("f", "get", "user.2k"), ("f", "del", "user.2k"),
        ("d", "set", "user.folder", b"d", 0), ("d", "get", "user.folder"),
        ("l", "set", "user.link", b"l", 0), ("f", "list",), ("d", "list"),
        ("f", "set", "trusted.t", b"t", 0), ("f", "get", "trusted.t"),
        ("f", "list"), ("f", "set", "user.big", b"b" * 65537, 0),
    ]

    def do(top, name, action, *args):
        path = f"{top}/{name}"
        try:
            if action == "set":
                os.setxattr(path, args[0], args[1], args[2],
                            follow_symlinks=False)
                return "ok"
            if action == "get":
                return os.getxattr(path, args[0], follow_symlinks=False)
            if action == "del":
                return os.removexattr(path, args[0], follow_symlinks=False)
            return sorted(a for a in os.listxattr(path)
                          if not a.startswith("security."))
        except OSError as e:
            return errno.errorcode[e.errno]

    for step in steps:
        equal(do(t.dir, *step), do(t.ref, *step), f"xattr {shorten(step)}")
    before = {n: xattrs_of(f"{t.dir}/{n}") for n in "fd"}
    os.rename(t.dir + "/f", t.dir + "/g")
    os.link(t.dir + "/g", t.dir + "/f")
    t.remount()
    equal({n: xattrs_of(f"{t.dir}/{n}") for n in "fd"}, before, "remounted")
    equal(xattrs_of(t.dir + "/g"), before["f"], "renamed and linked")


@test(folder=True)
def p11_large_and_many_xattrs(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"x")
    values = {"user.0": b""}
    for size in (1, 255, 1023, 1024, 1025, 3000, 4096, 16_384, 65_536):
        value = pattern("x", size)
        if error_of(os.setxattr, path, f"user.{size}", value) == "ok":
            values[f"user.{size}"] = value
        elif not t.on:
            raise Failure(f"a value of {size} bytes is refused")
    os.setxattr(path, "user.0", b"")
    if not t.on:
        for i in range(300):
            os.setxattr(path, f"user.many-{i}", f"{i}".encode())
            values[f"user.many-{i}"] = f"{i}".encode()
        os.setxattr(path, "user.65536", b"small now")
        values["user.65536"] = b"small now"
        os.removexattr(path, "user.many-7")
        del values["user.many-7"]
    equal(xattrs_of(path), values, "at once")
    t.remount()
    equal(xattrs_of(path), values, "after the remount")
    os.unlink(path)


@test(folder=True)
def p11_setfattr_and_getfattr_agree(t):
    need("setfattr", "getfattr")
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"")
    run("setfattr", "-n", "user.comment", "-v", "some text", path)
    t.remount()
    out = run("getfattr", "--absolute-names", "-d", path).out
    check('user.comment="some text"' in out, f"getfattr said {out!r}")


@test(root=True, folder=True)
def p09_acls_are_obeyed_or_refused(t):
    need("setfacl", "getfacl")
    if not t.on:
        t.mount_options = ["-o", "allow_other"]
    t.setup()
    if not t.on:
        os.chmod(t.point, 0o755)
    path = t.dir + "/f"
    write_file(path, b"secret")
    os.chmod(path, 0o600)
    os.chmod(t.dir, 0o755)
    done = run("setfacl", "-m", "u:nobody:r", path, expect=None)
    if done.returncode:
        check("not supported" in done.err, f"setfacl: {done.err}")
        out = run("getfacl", "-c", "--absolute-names", path).out.split()
        equal(out, ["user::rw-", "group::---", "other::---"], "getfacl")
        return
    call_as(NOBODY, NOBODY, lambda: read_file(path))
    os.chmod(path, 0o600)       # the mask is now empty
    call_as(NOBODY, NOBODY,
            lambda: fails_with("EACCES", os.open, path, os.O_RDONLY))
    os.mkdir(t.dir + "/d")
    run("setfacl", "-d", "-m", "u:nobody:rw", t.dir + "/d")
    write_file(t.dir + "/d/new", b"x")
    out = run("getfacl", "-c", "--absolute-names", t.dir + "/d/new").out
    check("user:nobody:rw-" in out, f"no default entry inherited: {out}")
    before = run("getfacl", "-cR", "--absolute-names", t.dir).out
    run("cp", "-a", path, t.dir + "/copy")
    equal(run("getfacl", "-c", "--absolute-names", t.dir + "/copy").out,
          run("getfacl", "-c", "--absolute-names", path).out, "cp -a")
    os.unlink(t.dir + "/copy")
    t.remount()
    equal(run("getfacl", "-cR", "--absolute-names", t.dir).out, before,
          "after the remount")


@test(folder=True)
def w22_append_only_and_immutable_are_refused_or_obeyed(t):
    """Under write-back caching they could not be obeyed: never in silence."""
    need("chattr")
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"x")
    for flag in "ai":
        if run("chattr", "+" + flag, path, expect=None).returncode:
            continue
        try:
            fails_with("EPERM", os.truncate, path, 0)
        finally:
            run("chattr", "-" + flag, path)


# --- modes and owners ------------------------------------------------------

@test(folder=True)
def umask_and_chmod_give_the_mode(t):
    t.setup()
    path = t.dir + "/f"
    old = os.umask(0o027)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
        os.mkdir(t.dir + "/d", 0o777)
    finally:
        os.umask(old)
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o640, "file")
    equal(stat.S_IMODE(os.stat(t.dir + "/d").st_mode), 0o750, "folder")
    for mode in (0, 0o400, 0o4755, 0o2755, 0o1777, 0o7777):
        os.chmod(path, mode)
        equal(stat.S_IMODE(os.stat(path).st_mode), mode, "chmod")
    t.remount()
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o7777, "remounted")


@test(user=True, folder=True)
def permissions_hold_for_the_owner_too(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"x")
    os.chmod(path, 0)
    fails_with("EACCES", os.open, path, os.O_RDONLY)
    os.chmod(path, 0o400)
    fails_with("EACCES", os.open, path, os.O_WRONLY)
    os.mkdir(t.dir + "/d")
    write_file(t.dir + "/d/f", b"")
    os.chmod(t.dir + "/d", 0o500)
    fails_with("EACCES", os.unlink, t.dir + "/d/f")
    fails_with("EPERM", os.chown, path, 0, 0)
    os.chmod(t.dir + "/d", 0o700)
    fails_with("EPERM", os.mknod, t.dir + "/null",
               0o666 | stat.S_IFCHR, os.makedev(1, 3))


@test(root=True)
def m11_two_users_share_a_mount_with_allow_other(t):
    t.mount_options = ["-o", "allow_other"]
    t.setup()
    os.chmod(t.point, 0o755)
    os.chmod(t.dir, 0o1777)
    mine = t.dir + "/root-only"
    write_file(mine, b"secret")
    os.chmod(mine, 0o600)
    shared = t.dir + "/group"
    os.mkdir(shared)
    os.chown(shared, 0, 4242)
    os.chmod(shared, 0o2770)

    def as_nobody():
        fails_with("EACCES", os.open, mine, os.O_RDONLY)
        write_file(t.dir + "/theirs", b"from nobody")
        fails_with("EPERM", os.chown, t.dir + "/theirs", 0, 0)
        fails_with("EPERM EACCES", os.unlink, mine)     # sticky folder
        fails_with("EPERM EACCES", os.rename, mine, t.dir + "/moved")
        write_file(shared + "/by-group", b"g")          # second group
        os.mkdir(shared + "/folder")

    call_as(NOBODY, NOBODY, as_nobody, groups=[4242])
    call_as(NOBODY - 1, NOBODY - 1, lambda: fails_with(
        "EACCES", os.listdir, shared))
    t.remount()
    st = os.stat(t.dir + "/theirs")
    equal((st.st_uid, st.st_gid), (NOBODY, NOBODY), "owner of theirs")
    st = os.stat(shared + "/by-group")
    equal((st.st_uid, st.st_gid), (NOBODY, 4242), "setgid folder: a file")
    st = os.stat(shared + "/folder")
    equal((st.st_gid, bool(st.st_mode & stat.S_ISGID)), (4242, True),
          "setgid folder: a folder")


@test(root=True)
def others_are_kept_out_without_allow_other(t):
    t.setup()
    os.chmod(t.dir, 0o777)
    call_as(NOBODY, NOBODY, lambda: fails_with(
        "EACCES", os.listdir, t.point))


@test(root=True, folder=True)
def w04_setuid_bits_go_when_another_user_writes(t):
    if not t.on:
        t.mount_options = ["-o", "allow_other"]
    t.setup()
    if not t.on:
        os.chmod(t.point, 0o755)
    os.chmod(t.dir, 0o755)
    actions = {
        "write": lambda p: write_through(p),
        "truncate": lambda p: os.truncate(p, 1),
        "open with O_TRUNC": lambda p: os.close(
            os.open(p, os.O_WRONLY | os.O_TRUNC)),
    }
    for what, action in actions.items():
        path = t.dir + "/" + what
        write_file(path, b"#!/bin/sh\n" * 10)
        os.chmod(path, 0o6777)
        call_as(NOBODY, NOBODY, lambda: action(path))
        equal(oct(stat.S_IMODE(os.stat(path).st_mode)), oct(0o777),
              f"{what}: mode")
    path = t.dir + "/chown"
    write_file(path, b"x")
    os.chmod(path, 0o6755)
    os.chown(path, 1, 1)
    equal(oct(stat.S_IMODE(os.stat(path).st_mode)), oct(0o755), "chown: mode")
    before = {n: os.stat(f"{t.dir}/{n}").st_mode for n in os.listdir(t.dir)}
    t.remount()
    equal({n: os.stat(f"{t.dir}/{n}").st_mode for n in before}, before,
          "modes after the remount")


def write_through(path):
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b"changed")
    os.fsync(fd)
    os.close(fd)


@test(root=True, folder=True)
def device_nodes_keep_their_numbers(t):
    t.setup()
    nodes = {"null": (stat.S_IFCHR, os.makedev(1, 3)),
             "large": (stat.S_IFBLK, os.makedev(259, 70_000)),
             "pipe": (stat.S_IFIFO, 0), "sock": (stat.S_IFSOCK, 0)}
    for name, (kind, number) in nodes.items():
        os.mknod(f"{t.dir}/{name}", kind | 0o666, number)
    t.remount()
    for name, (kind, number) in nodes.items():
        st = os.lstat(f"{t.dir}/{name}")
        equal((stat.S_IFMT(st.st_mode), st.st_rdev), (kind, number), name)


@test(folder=True)
def fifos_and_sockets_work(t):
    import socket
    t.setup()
    pipe = t.dir + "/pipe"
    os.mkfifo(pipe, 0o600)

    def write():
        with open(pipe, "wb") as f:
            f.write(b"through the pipe")
    in_parallel(write, lambda: equal(read_file(pipe), b"through the pipe",
                                     "read from the FIFO"))
    os.chdir(t.dir)
    server = socket.socket(socket.AF_UNIX)
    server.bind("sock")
    server.listen()

    def client():
        s = socket.socket(socket.AF_UNIX)
        s.connect("sock")
        s.sendall(b"hello")

    def serve():
        connection, _ = server.accept()
        equal(connection.recv(10), b"hello", "over the socket")
    in_parallel(client, serve)
    server.close()
    os.chdir("/")


@test(folder=True)
def locks_between_processes(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"x" * 100)
    with open(path, "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)

        def other():
            with open(path, "r+b") as g:
                fails_with("EAGAIN EACCES", fcntl.lockf, g,
                           fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)
                fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 20)
        in_parallel(other)
        fcntl.lockf(f, fcntl.LOCK_UN)
        fcntl.flock(f, fcntl.LOCK_EX)

        def third():
            with open(path, "rb") as g:
                fails_with("EAGAIN", fcntl.flock, g,
                           fcntl.LOCK_EX | fcntl.LOCK_NB)
        in_parallel(third)

    def after():    # closing gave all up
        with open(path, "r+b") as g:
            fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(g, fcntl.LOCK_EX | fcntl.LOCK_NB)
    in_parallel(after)


@test(folder=True)
def copy_file_range_and_sendfile(t):
    t.setup()
    data = pattern("copy", 3 * MIB + 5)
    write_file(t.dir + "/a", data)
    source = os.open(t.dir + "/a", os.O_RDONLY)
    for name, call in [
            ("range", lambda o: os.copy_file_range(source, o, MIB)),
            ("sendfile", lambda o: os.sendfile(o, source, None, MIB))]:
        os.lseek(source, 0, os.SEEK_SET)
        out = os.open(f"{t.dir}/{name}", os.O_WRONLY | os.O_CREAT)
        while call(out):
            pass
        os.close(out)
    os.close(source)
    t.remount()
    for name in ("range", "sendfile"):
        check(read_file(f"{t.dir}/{name}") == data, f"{name} differs")


@test(folder=True)
def fsync_of_everything(t):
    t.setup()
    write_file(t.dir + "/f", b"x" * 5000, sync=True)
    fsync_path(t.dir + "/f")
    fsync_path(t.dir)
    fd = os.open(t.dir + "/f", os.O_RDWR)
    os.pwrite(fd, b"y", 3)
    os.fdatasync(fd)
    os.close(fd)
    run("sync", "-f", t.dir)
    fd = os.open(t.dir + "/s", os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    for i in range(20):
        os.write(fd, bytes([i]) * 700)
    os.close(fd)
    t.remount()
    equal(read_file(t.dir + "/s"),
          b"".join(bytes([i]) * 700 for i in range(20)), "O_SYNC writes")
