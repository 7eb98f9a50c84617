# SPDX-License-Identifier: GPL-3.0-or-later
"""What is no container, is cut short, or damaged: the right message and
status, never a crash, never success."""

import os
import shutil
import socket

from kit import (COST, DAMAGED, DONE, FAILED, MIB, NO_CONTAINER, SIZE,
                 UNSUPPORTED, WRONG, case, check, equal)

HEADER = 256 * 1024
COPIES = (0, 16 * MIB)
RINGS = (512 * 1024, 16 * MIB + 512 * 1024)


def commands(path):
    """All that open a container."""
    return (["info", path], ["info", "--json", path], ["key", "list", path],
            ["check", "--password-file", "pw", path],
            ["key", "change", *COST, "--password-file", "pw",
             "--new-password-file", "new", path])


@case
def m09_what_is_no_container(t):
    with open("text", "wb") as f:
        f.write(b"hello\n" * 100_000)
    with open("zeros", "wb") as f:
        f.truncate(40 * MIB)
    with open("random", "wb") as f:
        f.write(os.urandom(20 * MIB))
    with open("one", "wb") as f:
        f.write(b"x")
    open("empty", "wb").close()
    os.mkdir("folder")
    os.mkfifo("fifo")
    os.symlink("nowhere", "dangling")
    os.symlink("loop", "loop")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind("socket")
    before = sorted(os.listdir("."))
    for path, status in (
            ("text", NO_CONTAINER), ("zeros", NO_CONTAINER),
            ("random", NO_CONTAINER), ("one", NO_CONTAINER),
            ("empty", NO_CONTAINER), ("folder", NO_CONTAINER),
            ("fifo", NO_CONTAINER), ("socket", NO_CONTAINER),
            ("/dev/null", NO_CONTAINER), ("/dev/zero", NO_CONTAINER),
            ("/bin/sh", NO_CONTAINER), ("missing", NO_CONTAINER),
            ("dangling", NO_CONTAINER), ("text/c", NO_CONTAINER),
            ("loop", FAILED), ("x" * 300, FAILED)):
        for command in commands(path):
            # Changing needs to open it for writing first.
            allowed = (status, FAILED) if "change" in command else status
            t.bad(allowed, *command, says=path[-20:])
    unix.close()
    equal(sorted(os.listdir(".")), before, "files left behind")


@case
def m09_without_permission(t):
    def nobody():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
    t.create()
    os.chmod("c.tusk", 0)
    for command in commands("c.tusk"):
        t.bad(FAILED, *command, before=nobody, says="permission denied")


def cut(length):
    shutil.copyfile("whole", "c.tusk")
    os.truncate("c.tusk", length)


@case
def cut_short(t):
    t.create()
    os.rename("c.tusk", "whole")
    size = os.stat("whole").st_size
    lengths = {0, 1, 511, 512, 4095, 4096, 4097, 65535, 65536, HEADER - 1,
               HEADER, RINGS[0], RINGS[0] + 4096, RINGS[0] + HEADER, MIB - 1,
               MIB, 2 * MIB, 16 * MIB - 1, 16 * MIB, 16 * MIB + HEADER,
               RINGS[1] + 4096, RINGS[1] + HEADER - 1, RINGS[1] + HEADER,
               17 * MIB - 1, 17 * MIB, size - 4096, size - 1}
    for length in sorted(lengths):
        cut(length)
        done = t.run("check", "--password-file", "pw", "c.tusk")
        check(done.status in (DAMAGED, NO_CONTAINER),
              f"cut to {length}: {done}")
        if length < 4096:
            equal(done.status, NO_CONTAINER, f"cut to {length}")
        if length >= HEADER:
            equal(done.status, DAMAGED, f"cut to {length}")
        check(done.out or len(done.lines) == 1, f"cut to {length}: {done}")
        for command in (["info", "c.tusk"], ["key", "list", "c.tusk"]):
            done = t.run(*command)
            check(done.status in (DONE, DAMAGED, NO_CONTAINER),
                  f"cut to {length}: {done}")
            check((done.status == DONE) == (not done.lines),
                  f"cut to {length}: {done}")


def overwrite(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset)
        f.write(data)


def flip(path, offset, bit):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 1 << bit]))


@case
def k04_one_copy_of_the_header_is_enough(t):
    t.create()
    shutil.copyfile("c.tusk", "whole")
    for copy in COPIES:
        for data in (bytes(HEADER), os.urandom(HEADER), bytes(4096)):
            shutil.copyfile("whole", "c.tusk")
            overwrite("c.tusk", copy, data)
            done = t.run("check", "--password-file", "pw", "c.tusk")
            equal(done.status, DAMAGED, f"{done}")
            check(b"header" in done.out, f"{done}")
            t.bad(WRONG, "check", "--password-file", "wrong", "c.tusk")
            info = t.good("info", "--json", "c.tusk").json()
            equal(info["header_copies_good"],
                  [copy != COPIES[0], copy != COPIES[1]], "copies")
            done = t.good("key", "change", *COST, "--password-file", "pw",
                          "--new-password-file", "new", "c.tusk")
            check("copy of its header" in done.lines[0], f"{done}")
            # Both were written anew.
            check(t.opens("new"), "not mended")


@case
def k04_both_copies_gone(t):
    t.create()
    for copy in COPIES:
        overwrite("c.tusk", copy, bytes(HEADER))
    for command in commands("c.tusk"):
        t.bad(NO_CONTAINER, *command, says="not a container")


@case
def a_bit_flipped_in_both_copies_is_damage(t):
    t.create()
    shutil.copyfile("c.tusk", "whole")
    places = [0, 7, 8, 12, 16, 24, 40, 100, 4095, 4096, 65536, 65540, 65600,
              70000, HEADER - 1]
    places += [t.random.randrange(HEADER) for _ in range(20 * t.rounds)]
    for place in places:
        shutil.copyfile("whole", "c.tusk")
        bit = t.random.randrange(8)
        for copy in COPIES:
            flip("c.tusk", copy + place, bit)
        for command in commands("c.tusk"):
            t.bad((DAMAGED, NO_CONTAINER, UNSUPPORTED), *command)


@case
def random_damage_never_crashes(t):
    t.create()
    shutil.copyfile("c.tusk", "whole")
    for _ in range(30 * t.rounds):
        shutil.copyfile("whole", "c.tusk")
        for _ in range(t.random.choice([1, 2, 5, 20])):
            base = t.random.choice(COPIES + RINGS)
            length = t.random.choice([1, 4, 16, 512, 4096, 65536])
            data = t.random.choice([bytes, os.urandom])(length)
            overwrite("c.tusk", base + t.random.randrange(HEADER), data)
        done = t.run("check", "--password-file", "pw", "c.tusk")
        check(done.status in (DONE, DAMAGED, NO_CONTAINER, UNSUPPORTED),
              f"{done}")
        check(done.status == DONE or done.out or len(done.lines) == 1,
              f"{done}")
        for command in commands("c.tusk")[:3]:
            t.run(*command)


@case
def superblocks_gone(t):
    t.create()
    for ring in RINGS:
        overwrite("c.tusk", ring, os.urandom(HEADER))
    t.bad(DAMAGED, "check", "--password-file", "pw", "c.tusk",
          says="superblock")
    t.bad(WRONG, "check", "--password-file", "wrong", "c.tusk")
    t.bad(DAMAGED, "key", "change", *COST, "--password-file", "pw",
          "--new-password-file", "new", "c.tusk", says="superblock")


@case
def checking_changes_nothing(t):
    t.create()
    before = open("c.tusk", "rb").read()
    st = os.stat("c.tusk")
    for command in commands("c.tusk")[:4]:
        t.good(*command)
    t.good("check", "--data", "--password-file", "pw", "c.tusk")
    check(open("c.tusk", "rb").read() == before, "content")
    now = os.stat("c.tusk")
    equal((now.st_mtime_ns, now.st_size), (st.st_mtime_ns, SIZE), "file")


@case
def check_works_on_a_read_only_file(t):
    def nobody():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
    t.create()
    os.chmod("c.tusk", 0o444)
    os.chmod("pw", 0o444)
    t.good("check", "--password-file", "pw", "c.tusk", before=nobody)
    t.bad(FAILED, "key", "change", *COST, "--password-file", "pw",
          "--new-password-file", "new", "c.tusk", before=nobody,
          says="permission denied")
