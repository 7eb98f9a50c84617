# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands as scripts and people meet them: messages, exit codes,
passwords, mounting and unmounting."""

import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import time

from kit import *

NOBODY = 65534
DONE, FAILED, USAGE, WRONG, DAMAGED, IN_USE, NO_CONTAINER, POINT, NO_FUSE = \
    range(9)


def one_line(done, *words):
    """One message on stderr, nothing on stdout, with all of the words."""
    lines = done.err.strip().splitlines()
    equal(len(lines), 1, f"lines on stderr ({done.err!r})")
    equal(done.out, "", "stdout")
    for word in words:
        check(word.lower() in done.err.lower(),
              f"no {word!r} in {done.err!r}")


def nothing_mounted(t, point=None):
    equal(mount_points(t.top), [], "mounts")
    equal(os.listdir(point or t.point), [], "what the mount point shows")
    equal([p for p, s in children_of(os.getpid()) if s != "Z"], [],
          "processes left")


# --- bad input -------------------------------------------------------------

@test(every_scheme=True)
def m09_a_wrong_password_gives_3_and_one_line(t):
    t.create()
    write_file(t.path("wrong"), b"battery staple")
    done = t.try_mount(key=t.path("wrong"), expect=WRONG)
    one_line(done, "password")
    nothing_mounted(t)
    for command in ("check",):
        t.tusk(command, "--password-file", t.path("wrong"), t.container,
               expect=WRONG)
    t.mount()


@test()
def m09_what_is_no_container_gives_6(t):
    files = {
        "empty": b"", "one-byte": b"x", "text": b"hello\n" * 100_000,
        "zeros": bytes(40 * MIB), "random": pattern("no", 40 * MIB),
        "program": read_file("/bin/ls"),
    }
    for name, data in files.items():
        write_file(t.path(name), data)
        done = t.try_mount(container=t.path(name), expect=NO_CONTAINER)
        one_line(done, name)
        nothing_mounted(t)
        done = t.tusk("check", "--password-file", t.key, t.path(name),
                      expect=NO_CONTAINER)
        t.tusk("info", t.path(name), expect=NO_CONTAINER)
        equal(sha(t.path(name)), hashlib.sha256(data).hexdigest(),
              "the file was changed")


@test()
def m09_missing_and_odd_container_paths(t):
    for name in ("missing", "nowhere/c.tusk"):
        done = t.try_mount(container=t.path(name), expect=None)
        check(done.returncode not in (0, WRONG), f"status {done.returncode}")
        one_line(done, "no such file")
    os.mkdir(t.path("folder"))
    done = t.try_mount(container=t.path("folder"), expect=None)
    check(done.returncode in (FAILED, NO_CONTAINER), f"{done.returncode}")
    one_line(done)
    os.mkfifo(t.path("fifo"))
    done = t.try_mount(container=t.path("fifo"), expect=None)
    check(done.returncode in (FAILED, NO_CONTAINER), f"{done.returncode}")
    nothing_mounted(t)


@test(user=True)
def m09_an_unreadable_container(t):
    t.create()
    os.chmod(t.container, 0)
    done = t.try_mount(expect=FAILED)
    one_line(done, "permission denied")
    os.chmod(t.container, 0o600)


def filled(t):
    """A container with files in it, unmounted; returns the tree in it."""
    t.setup()
    make_tree(t.dir, files=60)
    write_file(t.dir + "/larger", pattern("larger", 12 * MIB))
    before = tree(t.dir)
    t.umount()
    return before


@test(timeout=600)
def containers_cut_short_are_refused(t):
    """4 or 6 and a message; what is shown in spite of it is all there."""
    before = filled(t)
    size = os.stat(t.container).st_size
    whole = t.path("whole")
    os.rename(t.container, whole)
    lengths = [0, 1, 4095, 4096, 65536, 262_144, 524_288, 600_000, MIB,
               2 * MIB, 16 * MIB, 17 * MIB, 20 * MIB, size // 2,
               size - 4096, size - 1]
    for length in sorted(set(lengths)):
        run("cp", "--sparse=always", whole, t.container)
        os.truncate(t.container, length)
        done = t.try_mount(expect=(DONE, DAMAGED, NO_CONTAINER))
        if done.returncode == 0:
            same_tree(tree(t.dir), before, f"cut to {length} bytes, mounted")
            t.tusk("umount", t.point)
        else:
            check(done.err.strip(), f"cut to {length}: no message")
            nothing_mounted(t)
        if length < 4096:
            equal(done.returncode, NO_CONTAINER, f"cut to {length}: status")
        if length <= 16 * MIB:
            check(done.returncode != 0, f"cut to {length} bytes it mounts")
        t.tusk("info", t.container, expect=(DONE, DAMAGED, NO_CONTAINER))
        t.check(expect=(DAMAGED, NO_CONTAINER) if done.returncode
                else (DONE, DAMAGED))
    os.unlink(t.container)


@test(timeout=900)
def d11_single_bits_flipped_give_the_right_bytes_or_an_error(t):
    before = filled(t)
    size = os.stat(t.container).st_size
    rng = random.Random(20)
    fd = os.open(t.container, os.O_RDWR)
    flips = 500 if t.long else 60
    named = 0
    for i in range(flips):
        while True:     # half anywhere, half where bytes are
            at = rng.randrange(size) if i % 2 else \
                rng.choice([rng.randrange(MIB), 16 * MIB + rng.randrange(MIB),
                            rng.randrange(size)])
            old = os.pread(fd, 1, at)
            if i % 2 or os.pread(fd, 64, at) != bytes(64):
                break
        os.pwrite(fd, bytes([old[0] ^ 1 << rng.randrange(8)]), at)
        problems = []
        before_pids = {p for p, _ in children_of(os.getpid())}
        done = t.try_mount("--ro", expect=(DONE, DAMAGED, NO_CONTAINER))
        if done.returncode == 0:
            daemon = next(p for p, _ in children_of(os.getpid())
                          if p not in before_pids)
            problems = differences(t.dir, before)
            t.tusk("umount", t.point)
            t.ended(daemon)
        else:
            problems = ["refused"]
            check(done.err.strip(), f"byte {at}: refused without a message")
        found = t.check(expect=(DONE, DAMAGED, NO_CONTAINER))
        if found.returncode == DONE:
            equal(problems, [], f"check finds nothing; flip at byte {at}")
        named += bool(problems)
        os.pwrite(fd, old, at)
    os.close(fd)
    check(named > 0, "no flip hit anything: the test is of no use")
    t.mount("--ro")
    equal(differences(t.dir, before), [], "with all bits as they were")


def differences(top, before):
    """Paths that give EIO; any other difference from before is a failure."""
    bad = []
    top = os.fsencode(top)
    for rel, entry in before.items():
        path = os.path.join(top, rel)
        try:
            st = os.lstat(path)
            equal(oct(st.st_mode), entry["mode"], f"mode of {rel!r}")
            if "size" in entry:
                equal(st.st_size, entry["size"], f"size of {rel!r}")
                equal(sha(path), entry["sha"], f"bytes of {rel!r}")
            elif "to" in entry:
                equal(os.readlink(path), entry["to"], f"target of {rel!r}")
            equal(xattrs_of(path), entry["xattrs"], f"xattrs of {rel!r}")
        except OSError as e:
            equal(e.errno, 5, f"errno for {rel!r}")
            bad.append(rel)
    return bad


@test()
def k04_one_header_lost_is_survived_and_said(t):
    before = filled(t)
    for at in (0, 16 * MIB):
        fd = os.open(t.container, os.O_RDWR)
        old = os.pread(fd, 256 * KIB, at)
        os.pwrite(fd, bytes(256 * KIB), at)
        done = t.mount("--ro")
        check("header" in done.err.lower(),
              f"nothing is said about the header: {done.err!r}")
        same_tree(tree(t.dir), before, "what is shown")
        t.umount()
        os.pwrite(fd, old, at)
        os.close(fd)
    t.check()
    fd = os.open(t.container, os.O_RDWR)
    for at in (0, 16 * MIB):
        os.pwrite(fd, bytes(256 * KIB), at)
    os.close(fd)
    done = t.try_mount(expect=(NO_CONTAINER, DAMAGED))
    nothing_mounted(t)
    os.unlink(t.container)


# --- mount points ----------------------------------------------------------

@test()
def a_mount_point_that_is_missing_a_file_or_full_gives_7(t):
    t.create()
    write_file(t.path("file"), b"x")
    os.mkdir(t.path("full"))
    write_file(t.path("full/of-things"), b"x")
    for name in ("missing", "file", "full"):
        done = t.try_mount(point=t.path(name), expect=POINT)
        one_line(done, name)
        equal(mount_points(t.top), [], "mounts")
    equal(read_file(t.path("full/of-things")), b"x", "what was there")
    t.mount("-o", "nonempty", point=t.path("full"))
    equal(os.listdir(t.path("full")), [], "with nonempty")
    t.umount(point=t.path("full"))
    equal(os.listdir(t.path("full")), ["of-things"], "underneath")


@test(user=True)
def a_mount_point_of_someone_else_is_refused(t):
    t.create()
    done = t.try_mount(point="/mnt", expect=(POINT, NO_FUSE))
    check(done.err.strip(), "no message")


@test()
def a_mount_point_in_use_is_refused(t):
    t.setup()
    t.create(container=t.path("second"))
    done = t.try_mount(container=t.path("second"), expect=POINT)
    one_line(done)
    t.alive("a second mount on the same folder")
    equal(os.listdir(t.point), ["work"], "what is shown")


@test()
def m05_a_dead_mount_is_cleared_or_explained(t):
    t.setup()
    write_file(t.dir + "/f", b"kept", sync=True)
    for i in range(20 if t.long else 6):
        t.kill()
        fails_with("ENOTCONN", os.statvfs, t.point)
        done = t.try_mount(expect=(DONE, POINT))
        if done.returncode:
            check("umount" in done.err, f"no cure is named: {done.err!r}")
            t.tusk("umount", t.point)
            t.mount()
        else:
            t.daemon = next(p for p, s in children_of(os.getpid())
                            if s != "Z")
        equal(read_file(t.dir + "/f"), b"kept", "content")
        equal(len(mount_points(t.top)), 1, "lines in mountinfo")
    t.kill()
    t.tusk("umount", t.point)
    equal(mount_points(t.top), [], "mounts after umount of a dead one")


@test()
def m05_a_dead_mount_with_open_files_is_cleared_too(t):
    t.setup()
    fd = os.open(t.dir + "/f", os.O_RDWR | os.O_CREAT)
    os.chdir(t.dir)
    t.kill()
    t.tusk("umount", t.point)
    equal(mount_points(t.top), [], "mounts")
    os.chdir("/")
    error_of(os.close, fd)
    t.mount()


@test()
def umount_of_what_is_no_mount(t):
    for path in (t.point, t.path("missing"), "/"):
        done = t.tusk("umount", path, expect=None)
        check(done.returncode != 0, f"umount {path} says it worked")
        one_line(done)


@test()
def umount_while_busy_is_refused_and_harmless(t):
    t.setup()
    fd = os.open(t.dir + "/f", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"busy")
    done = t.tusk("umount", t.point, expect=None)
    check(done.returncode not in (0, 139, 134), f"status {done.returncode}")
    check("busy" in done.err or "in use" in done.err, f"said {done.err!r}")
    t.alive("umount while busy")
    os.write(fd, b" still")
    os.close(fd)
    t.remount()
    equal(read_file(t.dir + "/f"), b"busy still", "content")


@test()
def umount_lazy_detaches_and_finishes_at_the_last_close(t):
    t.setup()
    fd = os.open(t.dir + "/f", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"before ")
    process = subprocess.Popen([t.binary, "umount", "--lazy", t.point],
                               stdin=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_until(lambda: not mount_points(t.top), 60, "the mount is detached")
    os.write(fd, b"after")
    os.close(fd)
    equal(process.wait(120), 0, "status of umount --lazy")
    t.ended(t.daemon)
    t.mount()
    equal(read_file(t.dir + "/f"), b"before after", "content")


@test()
def m05_unmount_then_mount_at_once_20_times(t):
    t.setup()
    for i in range(20):
        write_file(f"{t.dir}/{i}", pattern("again", 200_000 + i))
        t.remount()
        equal(len(os.listdir(t.dir)), i + 1, "files")
        check(read_file(f"{t.dir}/{i}") == pattern("again", 200_000 + i),
              "the file written just before the unmount")


@test(timeout=600)
def m03_ready_when_the_command_returns(t):
    t.setup()
    write_file(t.dir + "/known", b"here")
    t.umount()
    rounds = 500 if t.long else 50
    for i in range(rounds):
        t.mount()
        equal(read_file(t.dir + "/known"), b"here", f"round {i}")
        t.umount()


@test()
def m03_foreground_stays_and_obeys_signals(t):
    t.create()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = subprocess.Popen(
            [t.binary, "mount", "-f", "--password-file", t.key, t.container,
             t.point], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True)
        wait_until(lambda: os.path.ismount(t.point), 60, "the mount")
        write_file(t.point + f"/{number}", b"x")
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
        equal(process.returncode, 0, f"status after {number}: {err.decode()}")
        nothing_mounted(t)
    t.mount()
    equal(len(os.listdir(t.point)), 3, "files")


@test()
def m03_the_daemon_lets_go_of_terminal_and_folder(t):
    """A caller that reads the output to its end must not wait for ever."""
    t.create()
    os.mkdir(t.path("somewhere"))
    os.chdir(t.path("somewhere"))
    t.mount()       # run() reads both pipes until they close
    os.chdir("/")
    for fd in (0, 1, 2):
        if t.is_root:
            equal(os.readlink(f"/proc/{t.daemon}/fd/{fd}"), "/dev/null",
                  f"descriptor {fd} of the daemon")
    if t.is_root:
        equal(os.readlink(f"/proc/{t.daemon}/cwd"), "/", "its folder")
        check(int(read_file(f"/proc/{t.daemon}/stat").split(b")")[1]
                  .split()[3]) == t.daemon, "it is in our session")


@test(user=True)
def m03_allow_other_that_is_not_permitted(t):
    if b"\nuser_allow_other" in b"\n" + read_file("/etc/fuse.conf"):
        raise Skip("/etc/fuse.conf permits it")
    t.create()
    done = t.try_mount("-o", "allow_other", expect=(FAILED, NO_FUSE))
    check("allow_other" in done.err, f"said {done.err!r}")
    nothing_mounted(t)


@test(root=True)
def m03_no_fusermount_and_no_device(t):
    """In a mount namespace of its own, as an ordinary user."""
    need("unshare", "setpriv")
    tool = shutil.which("fusermount3")
    if not tool:
        raise Skip("fusermount3 is not installed")
    t.create()
    for path in (t.container, t.point, t.key):
        os.chown(path, NOBODY, NOBODY)
    write_file(t.path("no"), b"")
    os.chmod(t.path("no"), 0)
    for hidden in (tool, "/dev/fuse"):
        done = run("unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && '
                   "shift 2 && exec setpriv --reuid 65534 --regid 65534 "
                   '--clear-groups "$@"', "sh", t.path("no"), hidden,
                   t.binary, "mount", "--password-file", t.key, t.container,
                   t.point, expect=None, timeout=100)
        if done.returncode == 1 and "unshare" in done.err:
            raise Skip("no mount namespaces: " + done.err.strip())
        equal(done.returncode, NO_FUSE, f"without {hidden}: {done.err!r}")
        one_line(done)
    nothing_mounted(t)
    for path in (t.container, t.point, t.key):
        os.chown(path, 0, 0)


# --- one writer ------------------------------------------------------------

@test()
def d07_a_second_mount_is_refused_by_whatever_path(t):
    t.setup()
    os.symlink(t.container, t.path("by-symlink"))
    os.link(t.container, t.path("by-hardlink"))
    os.mkdir(t.path("other"))
    for way in (t.container, t.path("by-symlink"), t.path("by-hardlink")):
        for extra in ([], ["--ro"]):
            done = t.try_mount(*extra, container=way, point=t.path("other"),
                               expect=IN_USE)
            one_line(done, "in use")
            check(str(t.daemon) in done.err, f"no pid in {done.err!r}")
    os.chdir(t.top)
    t.try_mount(container="./c.tusk", point="other", expect=IN_USE)
    os.chdir("/")
    t.check(expect=IN_USE)
    t.tusk("key", "change", "--password-file", t.key, "--new-password-file",
           t.path("c.tusk"), t.container, expect=(IN_USE, USAGE))
    t.create(expect=(FAILED, IN_USE))
    t.alive("attempts at a second mount")
    write_file(t.dir + "/f", b"fine")


@test()
def d07_key_change_of_a_mounted_container_is_refused(t):
    t.setup()
    write_file(t.path("new"), b"a better password")
    t.tusk("key", "change", "--password-file", t.key, "--new-password-file",
           t.path("new"), "--kdf-time", "0.05", "--kdf-memory", "16M",
           t.container, expect=IN_USE)
    t.remount()


@test(root=True)
def d07_a_second_mount_by_bind_mount_user_and_name_space(t):
    t.setup()
    os.mkdir(t.path("bound"))
    os.mkdir(t.path("other"))
    run("mount", "--bind", t.top, t.path("bound"))
    try:
        t.try_mount(container=t.path("bound/c.tusk"), point=t.path("other"),
                    expect=IN_USE)
    finally:
        run("umount", t.path("bound"))
    os.chmod(t.container, 0o666)
    os.chmod(t.key, 0o644)
    os.chown(t.path("other"), NOBODY, NOBODY)
    t.try_mount(point=t.path("other"), expect=IN_USE,
                preexec=as_user(NOBODY, NOBODY))
    done = run("unshare", "-m", t.binary, "mount", "--password-file", t.key,
               t.container, t.path("other"), expect=None)
    equal(done.returncode, IN_USE, f"in another name space: {done.err!r}")


@test()
def d07_a_crash_leaves_no_lock_behind(t):
    t.setup()
    write_file(t.dir + "/f", b"f", sync=True)
    for _ in range(5):
        t.kill()
        run("fusermount3" if not t.is_root else "umount",
            *(["-u"] if not t.is_root else []), t.point)
        t.mount()
        equal(read_file(t.dir + "/f"), b"f", "content")


@test()
def d07_many_mounts_at_the_same_time_one_wins(t):
    t.create()
    points = [t.path(f"p{i}") for i in range(6)]
    for p in points:
        os.mkdir(p)
    processes = [subprocess.Popen(
        [t.binary, "mount", "--password-file", t.key, t.container, p],
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for p in points]
    codes = sorted(p.wait(100) for p in processes)
    equal(codes, [DONE] + [IN_USE] * 5, "exit statuses")
    mounted = [p for p in points if os.path.ismount(p)]
    equal(len(mounted), 1, "mounts")
    t.tusk("umount", mounted[0])
    t.check()


# --- passwords -------------------------------------------------------------

@test(timeout=300)
def m01_which_bytes_of_a_file_are_the_password(t):
    write_file(t.path("made"), b"p w")
    t.create(key=t.path("made"))
    good = {"plain": b"p w", "lf": b"p w\n", "crlf": b"p w\r\n"}
    wrong = {"space": b" p w", "after": b"p w ", "two-cr": b"p w\r\r\n",
             "tab": b"p w\t\n", "nul": b"p w\0"}
    for name, data in {**good, **wrong}.items():
        write_file(t.path(name), data)
        if name in good:
            done = t.mount(key=t.path(name))
            equal(done.err, "", f"{name}: stderr")
            t.umount()
        else:
            t.try_mount(key=t.path(name), expect=WRONG)
    write_file(t.path("two"), b"p w\nsecond line\n")
    done = t.mount(key=t.path("two"))
    check(done.err.strip(), "no warning about what follows the first line")
    t.umount()
    refused = {"nothing": b"", "empty-line": b"\np w\n",
               "too-long": b"x" * 4097, "megabyte": b"y" * MIB}
    for name, data in refused.items():
        write_file(t.path(name), data)
        done = t.try_mount(key=t.path(name), expect=USAGE)
        one_line(done)
    done = t.try_mount(key=t.path("missing"), expect=USAGE)
    one_line(done, "missing")
    nothing_mounted(t)
    os.unlink(t.container)


@test()
def m01_odd_passwords_work(t):
    for i, data in enumerate([b"x" * 4096, b"a\0b", "pässwörd".encode(),
                              b"\xff\xfe", b"  ", b"\r"]):
        key, container = t.path(f"key{i}"), t.path(f"{i}.tusk")
        write_file(key, data + b"\n" if data == b"\r" else data)
        if data == b"\r":       # CR LF alone: an empty password
            t.create(key=key, container=container, expect=USAGE)
            continue
        t.create(key=key, container=container)
        t.mount(key=key, container=container)
        t.umount()


@test()
def m01_without_a_terminal_nothing_is_asked(t):
    t.create()
    for stdin in (subprocess.DEVNULL, None):
        def setup():
            os.setsid()
            if stdin is None:
                os.close(0)
        done = t.tusk("mount", t.container, t.point, expect=USAGE,
                      preexec=setup, timeout=100)
        one_line(done)
        check("password" in done.err, f"said {done.err!r}")
        t.tusk("create", "--no-recovery-key", t.path("new"), expect=USAGE,
               preexec=setup, timeout=100)
        check(not os.path.exists(t.path("new")), "a file was made")
    nothing_mounted(t)


@test()
def m01_password_from_a_descriptor(t):
    t.create()
    for data, expect in ((PASSWORD.encode(), 0),
                         (PASSWORD.encode() + b"\n", 0), (b"wrong", WRONG),
                         (b"", USAGE)):
        done = t.tusk("mount", "--password-fd", "0", t.container, t.point,
                      input=data, expect=expect)
        if expect == 0:
            t.tusk("umount", t.point)
    t.tusk("mount", "--password-fd", "77", t.container, t.point,
           expect=USAGE)
    done = t.tusk("mount", "--password-file", t.key, "--password-fd", "0",
                  t.container, t.point, input=PASSWORD.encode(),
                  expect=USAGE)
    one_line(done)
    # A password file, and something unrelated on stdin.
    t.mount(input=b"something else\n")


@test()
def k01_key_change(t):
    t.setup()
    write_file(t.dir + "/f", b"kept")
    t.umount()
    new = t.path("new")
    write_file(new, b"a better password\n")
    cost = ["--kdf-time", "0.05", "--kdf-memory", "16M"]
    same = ["key", "change", *cost, "--password-file", t.key,
            "--new-password-file"]
    done = t.tusk(*same, t.key, t.container, expect=None)
    check(done.returncode != 0, "the same file for both is accepted")
    write_file(t.path("copy"), PASSWORD.encode() + b"\n")
    done = t.tusk(*same, t.path("copy"), t.container, expect=None)
    check(done.returncode != 0, "the old password is accepted as new")
    write_file(t.path("wrong"), b"wrong")
    t.tusk("key", "change", *cost, "--password-file", t.path("wrong"),
           "--new-password-file", new, t.container, expect=WRONG)
    t.mount()
    t.umount()
    done = t.tusk(*same, new, t.container)
    t.try_mount(expect=WRONG)
    t.mount(key=new)
    equal(read_file(t.dir + "/f"), b"kept", "content")
    t.umount()
    write_file(t.key, b"a better password")     # for the final check


@test()
def k03_weak_cost_warns_and_too_weak_is_refused(t):
    done = t.create()
    check("weak" in done.err.lower() or "kdf" in done.err.lower(),
          f"no warning: {done.err!r}")
    t.tusk("create", "--password-file", t.key, "--no-recovery-key",
           "--kdf-memory", "4M", t.path("no"), expect=USAGE)
    check(not os.path.exists(t.path("no")), "a file was made")
    out = t.tusk("info", t.container).out.lower()
    check("argon2id" in out, "info does not name the KDF")
    t.mount()


@test()
def k01_no_secret_in_arguments_environment_or_info(t):
    t.setup()
    for name in ("cmdline", "environ"):
        if t.is_root:
            check(PASSWORD.encode() not in
                  read_file(f"/proc/{t.daemon}/{name}"), name)
    for args in (["info", t.container], ["info", "--json", t.container],
                 ["list"]):
        check(PASSWORD not in t.tusk(*args).out, f"in {args}")
    limits = read_file(f"/proc/{t.daemon}/limits").decode()
    core = next(x for x in limits.splitlines() if "core file" in x)
    equal(core.split()[4], "0", "core file size limit of the daemon")


# --- create, info, list, help ----------------------------------------------

@test()
def m09_create_refuses_what_exists_and_leaves_nothing_half_made(t):
    write_file(t.container, b"precious")
    t.create(expect=FAILED)
    equal(read_file(t.container), b"precious", "the file that was there")
    os.unlink(t.container)
    t.create(container=t.path("none/c"), expect=FAILED)
    for bad in (["--scheme", "rot13"], ["--sector-size", "1000"],
                ["--integrity", "maybe"], ["--size", "banana"],
                ["--size", "1M"], ["--no-such-option"]):
        done = t.create(*bad, expect=USAGE)
        one_line(done)
        check(not os.path.exists(t.container), f"{bad}: a file was made")
    t.create()
    equal(oct(stat.S_IMODE(os.stat(t.container).st_mode)), oct(0o600),
          "mode of the container")


@test(every_scheme=True)
def info_and_list_tell_what_it_is(t):
    t.create("--label", "My files")
    info = json.loads(t.tusk("info", "--json", t.container).out)
    text = json.dumps(info)
    for word in (t.config.scheme, "My files", str(t.config.sector)):
        check(word in text, f"info --json lacks {word!r}: {text}")
    check(t.config.scheme in t.tusk("info", t.container).out, "info")
    t.mount()
    out = t.tusk("list").out
    check(t.point in out and t.container in out, f"list: {out!r}")
    info2 = json.loads(t.tusk("info", "--json", t.point).out)
    equal(info2.get("uuid"), info.get("uuid"), "uuid of the mounted one")
    t.umount()
    check(t.point not in t.tusk("list").out, "list after the unmount")


@test()
def m09_help_version_and_usage(t):
    out = t.tusk("--version").out
    check("tusk" in out and any(c.isdigit() for c in out), f"{out!r}")
    commands = ("create", "mount", "umount", "list", "info", "check")
    for args in (["--help"], ["help"]):
        done = t.tusk(*args)
        equal(done.err, "", "stderr of help")
        for command in commands:
            check(command in done.out, f"help lacks {command}")
    for command in commands:
        done = t.tusk(command, "--help")
        check("usage" in done.out.lower(), f"{command} --help")
    for args in ([], ["frobnicate"], ["mount"], ["mount", "a"],
                 ["mount", "a", "b", "c"], ["mount", "--frob", "a", "b"],
                 ["umount"], ["create"], ["create", "a", "b"],
                 ["info"], ["list", "x"], ["key"], ["key", "frob", "x"],
                 ["mount", "-o", "frob", t.container, t.point],
                 ["mount", "-o", "cache=banana", t.container, t.point]):
        done = t.tusk(*args, expect=USAGE, preexec=os.setsid, timeout=100)
        equal(done.out, "", f"{args}: stdout")
        check(done.err.strip(), f"{args}: no message")


@test()
def m09_language_settings_change_no_output(t):
    t.create()
    outs = {t.tusk("info", "--json", t.container,
                   env={"LC_ALL": lang}).out
            for lang in ("C", "de_DE.UTF-8", "tr_TR.UTF-8")}
    equal(len(outs), 1, "different outputs")
    t.mount()


@test()
def mount_takes_the_words_of_fstab(t):
    t.create()
    t.mount("-o", "rw,noauto,nofail,nosuid,nodev,relatime,user,"
            "x-systemd.automount,comment=hello,_netdev")
    write_file(t.point + "/f", b"x")
    t.umount()
    t.mount("-o", "ro")
    fails_with("EROFS", write_file, t.point + "/g", b"x")
    t.umount()
    t.mount("-o", "noexec")
    shutil.copy("/bin/true", t.point + "/true")
    fails_with("EACCES", os.execv, t.point + "/true", ["true"])


@test()
def paths_with_odd_characters(t):
    folder = t.path("odd, path \\ with\nthings=ü")
    os.mkdir(folder)
    t.container = folder + "/c, \\d"
    t.point = folder + "/m n,o\\"
    os.mkdir(t.point)
    t.dir = t.point + "/work"
    t.setup()
    write_file(t.dir + "/f", b"x")
    t.remount()
    equal(read_file(t.dir + "/f"), b"x", "content")


# --- read-only -------------------------------------------------------------

@test(every_scheme=True)
def a_read_only_mount_changes_no_byte(t):
    before = filled(t)
    digest, st = sha(t.container), os.stat(t.container)
    t.mount("--ro")
    same_tree(tree(t.dir), before, "what is shown")
    for call in ((write_file, t.dir + "/new", b""),
                 (os.unlink, t.dir + "/larger"),
                 (os.mkdir, t.dir + "/d"), (os.chmod, t.dir, 0o777),
                 (os.utime, t.dir), (os.truncate, t.dir + "/larger", 1),
                 (os.setxattr, t.dir, "user.x", b""),
                 (os.rename, t.dir + "/larger", t.dir + "/l2"),
                 (os.open, t.dir + "/larger", os.O_RDWR)):
        fails_with("EROFS", *call)
    os.mkdir(t.path("again"))
    done = t.try_mount("--ro", point=t.path("again"), expect=(DONE, IN_USE))
    if done.returncode == 0:
        same_tree(tree(t.path("again") + "/work"), before, "two readers")
        t.tusk("umount", t.path("again"))
    t.try_mount(point=t.path("again"), expect=IN_USE)
    t.umount()
    equal(sha(t.container), digest, "the container's bytes")
    equal(os.stat(t.container).st_mtime_ns, st.st_mtime_ns, "its mtime")


@test()
def a_read_only_mount_after_a_crash_changes_no_byte(t):
    t.setup()
    make_tree(t.dir, files=30)
    run("sync", "-f", t.dir)
    fsync_path(t.dir)
    before = tree(t.dir)
    fd = os.open(t.dir + "/unlinked", os.O_CREAT | os.O_RDWR)
    os.unlink(t.dir + "/unlinked")
    fsync_path(t.dir)
    t.kill()
    os.close(fd)
    t.tusk("umount", t.point)
    digest = sha(t.container)
    t.mount("--ro")
    for path, entry in tree(t.dir).items():
        if path:
            equal(entry, before[path], repr(path))
    t.umount()
    equal(sha(t.container), digest, "the container's bytes")


@test()
def a_container_without_write_permission(t):
    before = filled(t)
    os.chmod(t.container, 0o400)
    if not t.is_root:
        done = t.try_mount(expect=FAILED)
        one_line(done)
    t.mount("--ro")
    same_tree(tree(t.dir), before, "what is shown")
    t.umount()
    os.chmod(t.container, 0o600)


@test()
def d14_no_plaintext_in_the_container(t):
    """I7: names and contents, searched for in what lies on the disk."""
    t.setup()
    words = [b"CONTENTS-THAT-MUST-NOT-SHOW", b"NAME-THAT-MUST-NOT-SHOW",
             b"TARGET-THAT-MUST-NOT-SHOW", b"VALUE-THAT-MUST-NOT-SHOW"]
    path = t.dir + "/" + words[1].decode()
    write_file(path, words[0] * 5000, sync=True)
    os.symlink(words[2].decode() * 3, t.dir + "/link")
    os.setxattr(path, "user.x", words[3] * 20)
    write_file(t.dir + "/small", words[0])
    t.umount()
    data = read_file(t.container)
    for word in words:
        check(word not in data, f"{word!r} stands in the container")
    check(PASSWORD.encode() not in data, "the password stands in it")


@test()
def d14_none_is_what_it_says(t):
    """Under `none` contents show and names do not: the check above works."""
    t.config = Config("none")
    t.setup()
    name = "NAME-THAT-MUST-NOT-SHOW"
    write_file(f"{t.dir}/{name}", b"CONTENTS-THAT-SHOW" * 5000)
    t.umount()
    data = read_file(t.container)
    check(b"CONTENTS-THAT-SHOW" in data, "contents do not show")
    check(name.encode() not in data, "the name shows")
