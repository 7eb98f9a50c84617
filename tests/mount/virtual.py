# SPDX-License-Identifier: GPL-3.0-or-later
"""/stats, /stats.json and /stats.prom at the mount's root."""

import json
import mmap
import os
import shutil
import subprocess

from kit import *

NAMES = ("stats", "stats.json", "stats.prom")


@test(every_scheme=True)
def s01_stats_are_fresh_at_every_open(t):
    t.setup()

    def written():
        return t.stats()["operations"]["write"]["bytes"]
    for i in range(3):
        before = written()
        write_file(f"{t.dir}/{i}", pattern(i, 10 * MIB), sync=True)
        between(written() - before, 10 * MIB, 10 * MIB + MIB,
                "bytes written by a file of 10 MiB")
    before = t.stats()["operations"]["mkdir"]["count"]
    for i in range(7):
        os.mkdir(f"{t.dir}/d{i}")
        equal(t.stats()["operations"]["mkdir"]["count"], before + i + 1,
              "folders made")
    check(read_file(t.point + "/stats") != b"", "stats is empty")


@test()
def s01_counters_only_grow(t):
    t.setup()

    def numbers(value, path=""):
        if isinstance(value, dict):
            for key, below in value.items():
                yield from numbers(below, f"{path}.{key}")
        elif isinstance(value, int) and \
                path.endswith((".count", ".errors", ".bytes")):
            yield path, value
    last = dict(numbers(t.stats()))
    check(len(last) > 20, f"only {len(last)} counters in stats.json")
    for i in range(25):
        write_file(f"{t.dir}/{i}", bytes(5000 * i), sync=i % 5 == 0)
        error_of(os.unlink, t.dir + "/missing")
        read_file(f"{t.dir}/{i}")
        now = dict(numbers(t.stats()))
        for path, value in last.items():
            if path.startswith(".operations"):
                check(now[path] >= value, f"{path} fell from {value} to "
                      f"{now[path]}")
        last = now


@test()
def s01_stats_json_is_json_for_jq_too(t):
    need("jq")
    t.setup()
    write_file(t.dir + "/f", b"x" * 10_000, sync=True)
    out = run("jq", "-e", ".operations.write.count",
              t.point + "/stats.json").out
    check(int(out) >= 1, f"jq says {out!r}")
    data = t.stats()
    check("operations" in data and len(data) > 3, f"keys: {list(data)}")


@test()
def s01_stats_prom_has_what_stats_json_has(t):
    """The unit tests know the format; here is that it comes from the mount."""
    t.setup()
    write_file(t.dir + "/f", b"x" * 10_000, sync=True)
    page = read_file(t.point + "/stats.prom").decode()
    series = dict(line.rsplit(" ", 1) for line in page.splitlines()
                  if not line.startswith("#"))
    check(any(name.startswith("tuskfs_info{") for name in series), page)
    uuid = t.stats()["identity"]["uuid"]
    for name in ("create", "write", "fsync"):
        key = f'tuskfs_operation_seconds_count{{uuid="{uuid}",' \
              f'operation="{name}"}}'
        equal(int(series[key]), t.stats()["operations"][name]["count"], key)
    if shutil.which("promtool"):
        run("sh", "-c", 'promtool check metrics <"$1"', "sh",
            t.point + "/stats.prom")


@test()
def s01_size_and_content_of_stats_agree(t):
    """At every open: stat's size is what can be read, in any way."""
    t.setup()
    for name in NAMES:
        path = f"{t.point}/{name}"
        for _ in range(50):
            fd = os.open(path, os.O_RDONLY)
            size = os.fstat(fd).st_size
            whole = os.pread(fd, 1 << 20, 0)
            equal(len(whole), size, "bytes of one read")
            pieces = b"".join(os.pread(fd, 100, at)
                              for at in range(0, size, 100))
            equal(pieces, whole, "read in pieces")
            with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
                equal(m[:], whole, "mapped")
            equal(os.pread(fd, 10, size), b"", "past the end")
            os.close(fd)
        check(whole.endswith(b"\n"), "no newline at the end")
        equal(os.stat(path).st_ino, os.stat(path).st_ino, "inode number")
        equal(oct(os.stat(path).st_mode), oct(0o100444), "mode")


@test()
def w23_programs_read_stats(t):
    t.setup()
    for name in NAMES:
        path = f"{t.point}/{name}"
        for old in ("copy", "copy2"):
            if os.path.exists(t.path(old)):
                os.unlink(t.path(old))      # made read-only
        for argv in (["cat", path], ["cp", path, t.path("copy")],
                     ["cp", "-a", path, t.path("copy2")],
                     ["tar", "-cf", t.path("a.tar"), "-C", t.point, name],
                     ["head", "-c", "10", path], ["tail", "-n", "2", path],
                     ["wc", "-c", path], ["grep", "-c", "e", path],
                     ["dd", "if=" + path, "of=/dev/null", "bs=7"],
                     ["od", "-c", path]):
            done = run(*argv, timeout=100)
            if argv[0] in ("tar", "cp", "cat"):
                equal(done.err, "", f"{argv[0]}: stderr")
        check(os.path.getsize(t.path("copy")) > 100, "an empty copy")
        check(os.path.getsize(t.path("copy2")) > 100, "an empty copy")


@test()
def s01_the_root_can_be_copied_searched_and_emptied(t):
    """Programs that walk the root see the user's files, and end."""
    need("rsync")
    t.setup()
    make_tree(t.dir + "/tree", files=50)
    equal(sorted(os.listdir(t.point)), ["work"], "names in the root")
    want = tree(t.dir)
    for name, argv in {
            "cp": ["cp", "-a", t.point + "/.", t.path("cp")],
            "rsync": ["rsync", "-aHX", t.point + "/", t.path("rsync/")],
            "tar": ["sh", "-c", 'mkdir "$2" && tar --xattrs -C "$1" -cf - . '
                    '| tar --xattrs -C "$2" -xpf -', "sh", t.point,
                    t.path("tar")]}.items():
        run(*argv, timeout=100)
        equal(sorted(os.listdir(t.path(name))), ["work"], f"{name} copied")
        same_tree(tree(t.path(name) + "/work"), want, f"copied by {name}")
    run("grep", "-r", "-D", "skip", "no such words", t.point, expect=1,
        timeout=100)
    found = run("find", t.point).out
    check("stats" not in found, "find lists stats")
    run("sh", "-c", 'rm -rf "$1"/* "$1"/.[!.]*', "sh", t.point)
    equal(os.listdir(t.point), [], "after rm -rf")
    check(read_file(t.point + "/stats"), "stats is gone with rm -rf")


@test()
def s01_stats_cannot_be_changed(t):
    t.setup()
    for name in NAMES:
        path = f"{t.point}/{name}"
        refused = "EACCES EPERM EROFS"
        got = error_of(append, path)
        check(got in refused.split(), f"appending: {got}")
        fails_with(refused, os.truncate, path, 0)
        fails_with("EPERM EACCES EROFS EBUSY", os.unlink, path)
        fails_with("EPERM EACCES EROFS EBUSY EXDEV EEXIST", os.rename, path,
                   t.dir + "/x")
        fails_with(refused, os.chmod, path, 0o777)
        fails_with(refused, os.utime, path, (1, 1))
        fails_with(refused + " EMLINK", os.link, path, t.dir + "/x")
        fails_with(refused + " EOPNOTSUPP ENOTSUP", os.setxattr, path,
                   "user.x", b"1")
        write_file(t.dir + "/own", b"own")
        for call in ((os.mkdir, path), (os.symlink, "x", path),
                     (os.link, t.dir + "/own", path), (os.mkfifo, path)):
            fails_with("EEXIST", *call)
        fails_with("EEXIST EPERM EACCES EBUSY", os.rename, t.dir + "/own",
                   path)
        fails_with("EEXIST", os.open, path,
                   os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        check(read_file(path), "it is empty now")
        equal(sorted(os.listdir(t.dir)), ["own"], "names")
        # The kernel remembers root's refused bytes as a failed write of the
        # mount, for the next one who asks: not for the unmount.
        run("sync", "-f", t.point, expect=None)
    # Only in the root: elsewhere these are names like any other.
    write_file(t.dir + "/stats", b"mine")
    equal(read_file(t.dir + "/stats"), b"mine", "a file of that name")


def append(path):
    """Root may open anything: the error then comes with the write's sync."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, b"x")
        os.fsync(fd)
    finally:
        os.close(fd)


@test(threads=True, timeout=600)
def s03_fifty_readers_at_once(t):
    t.setup()

    def reader():
        for _ in range(4):
            json.loads(read_file(t.point + "/stats.json"))

    def writer():
        for i in range(30):
            write_file(f"{t.dir}/{i}", pattern(i, 200_000), sync=i % 3 == 0)
    in_parallel(writer, *[reader] * 50)
    t.alive("fifty readers")


@test(timeout=300)
def s01_a_thousand_opens_cost_no_memory(t):
    need_true_memory()
    t.setup()

    def resident():
        with open(f"/proc/{t.daemon}/status") as f:
            return next(int(x.split()[1]) for x in f
                        if x.startswith("VmRSS")) * KIB
    for _ in range(300):
        read_file(t.point + "/stats")
    before = resident()
    for _ in range(5000):
        read_file(t.point + "/stats")
    check(resident() - before < 20 * MIB,
          f"{(resident() - before) // MIB} MiB more after 5,000 opens")


@test()
def stats_option_hidden_listed_off(t):
    t.create()
    t.mount("-o", "stats=listed")
    for name in NAMES:
        check(name in os.listdir(t.point), f"{name} is not listed")
    check(read_file(t.point + "/stats"), "stats is empty")
    run("ls", "-l", t.point)
    t.umount()
    t.mount("-o", "stats=off")
    for name in NAMES:
        check(not os.path.exists(f"{t.point}/{name}"), f"{name} is there")
    write_file(t.point + "/stats", b"my own")
    t.umount()
    t.mount()       # a real entry wins
    equal(read_file(t.point + "/stats"), b"my own", "the user's own stats")
    json.loads(read_file(t.point + "/stats.json"))
    os.unlink(t.point + "/stats")
    t.umount()
    t.mount("-o", "stats=hidden")
    check(read_file(t.point + "/stats") != b"my own", "the old file")


@test()
def stats_of_a_read_only_mount(t):
    t.setup()
    t.umount()
    t.mount("--ro")
    check(t.stats()["operations"], "no operations")
    check(read_file(t.point + "/stats"), "stats is empty")
