# SPDX-License-Identifier: GPL-3.0-or-later
"""What the mount tests stand on: containers, mounts, watched processes.

A test is a function with the decorator @test; its argument is a Case.  Each
runs in a process of its own that is the subreaper of all it starts, so the
daemons of `tusk mount` become its children: their exit status is checked, and
whatever a test leaves behind is found and ended by its id.
"""

import ctypes
import errno
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_CHILD_SUBREAPER = 36
PASSWORD = "correct horse"
KIB, MIB = 1 << 10, 1 << 20

TESTS = []


class Config:
    """A kind of container: what `tusk create` is told."""

    def __init__(self, scheme, sector=4096, integrity="on"):
        self.scheme, self.sector, self.integrity = scheme, sector, integrity
        self.name = scheme
        if sector != 4096:
            self.name += f"/{sector}"
        if integrity != "on":
            self.name += "/off"

    def args(self):
        return ["--scheme", self.scheme, "--sector-size", str(self.sector),
                "--integrity", self.integrity]


DEFAULT = Config("aes-256-xts")
CONFIGS = [
    DEFAULT,
    Config("none"),
    Config("aes-128-xts"),
    Config("aes-128-cbc"),
    Config("aes-256-cbc"),
    Config("aes-128-cbc-elephant"),
    Config("aes-256-cbc-elephant"),
    Config("none", integrity="off"),
    Config("aes-256-xts", sector=512),
    Config("aes-256-xts", integrity="off"),
    Config("aes-256-cbc", sector=512, integrity="off"),
    Config("aes-256-cbc-elephant", sector=512, integrity="off"),
]


class Failure(Exception):
    """What was promised did not happen."""


class Skip(Exception):
    """This machine or this user cannot run the test."""


def test(every_scheme=False, folder=False, root=False, user=False,
         threads=False, timeout=120):
    """Register a test.

    every_scheme  one run for each Config, else only the default
    folder        asks only for what any Linux folder does: runs with --on too
    root, user    needs to be root; needs not to be root
    threads       drives many threads of the daemon: also for the run under
                  ThreadSanitizer (--threads)
    timeout       seconds until it is ended as hanging; at least ten times what
                  it takes
    """
    def register(function):
        function.every_scheme = every_scheme
        function.folder = folder
        function.root, function.user = root, user
        function.threads = threads
        function.timeout = timeout
        TESTS.append(function)
        return function
    return register


# --- assertions ------------------------------------------------------------

def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(got, want, what):
    if got != want:
        raise Failure(f"{what}: got {shorten(got)}, want {shorten(want)}")


def between(got, low, high, what):
    if not low <= got <= high:
        raise Failure(f"{what}: got {got}, want {low} to {high}")


def shorten(value):
    text = repr(value)
    return text if len(text) <= 300 else text[:280] + f"... ({len(text)})"


def error_of(function, *args, **kwargs):
    """The name of the errno that the call fails with; 'ok' if it doesn't."""
    try:
        result = function(*args, **kwargs)
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e.errno))
    if isinstance(result, int) and not isinstance(result, bool) \
            and function is os.open:
        os.close(result)
    return "ok"


def fails_with(names, function, *args, **kwargs):
    got = error_of(function, *args, **kwargs)
    names = names.split()
    if got not in names:
        what = getattr(function, "__name__", function)
        raise Failure(f"{what}{shorten(args)}: got {got}, "
                      f"want {' or '.join(names)}")
    return got


# --- files -----------------------------------------------------------------

def write_file(path, data, sync=False):
    with open(path, "wb") as f:
        f.write(data)
        if sync:
            f.flush()
            os.fsync(f.fileno())


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def fsync_path(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def drop_cached(path):
    """Make the next read of this file go to the file system."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def pattern(seed, size):
    """Bytes that depend on every part of (seed, size)."""
    return random.Random(f"{seed}/{size}").randbytes(size)


def sha(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(MIB):
            digest.update(block)
    return digest.hexdigest()


def xattrs_of(path):
    found = {}
    for name in os.listxattr(path, follow_symlinks=False):
        if name.startswith(("user.", "trusted.")):
            found[name] = os.getxattr(path, name, follow_symlinks=False)
    return found


def tree(top, times=True, inodes=False, owners=True):
    """Everything that can be seen below a folder, as a comparable dict."""
    top = os.fsencode(top)
    links, found = {}, {}

    def visit(path, rel):
        st = os.lstat(path)
        entry = {"mode": oct(st.st_mode), "xattrs": xattrs_of(path)}
        if owners:
            entry["owner"] = (st.st_uid, st.st_gid)
        if times and rel:
            entry["mtime"] = st.st_mtime_ns
        if inodes:
            entry["ino"] = st.st_ino
        if stat.S_ISREG(st.st_mode):
            entry["size"], entry["sha"] = st.st_size, sha(path)
            entry["nlink"] = st.st_nlink
            if st.st_nlink > 1:
                entry["same as"] = links.setdefault(st.st_ino, rel)
        elif stat.S_ISLNK(st.st_mode):
            entry["to"] = os.readlink(path)
        elif stat.S_ISBLK(st.st_mode) or stat.S_ISCHR(st.st_mode):
            entry["rdev"] = st.st_rdev
        elif stat.S_ISDIR(st.st_mode):
            for name in sorted(os.listdir(path)):
                visit(os.path.join(path, name), os.path.join(rel, name))
        found[rel] = entry

    visit(top, b"")
    return found


def same_tree(got, want, what):
    for path in sorted(want.keys() | got.keys()):
        if path not in got:
            raise Failure(f"{what}: {path!r} is missing")
        if path not in want:
            raise Failure(f"{what}: {path!r} should not be there")
        equal(got[path], want[path], f"{what}: {path!r}")


def make_tree(top, files=200, seed=1, special=True):
    """A tree with all that backup programs must keep."""
    rng = random.Random(seed)
    folders = [top]
    os.makedirs(top, exist_ok=True)
    for i in range(files):
        if i % 12 == 0:
            folder = os.path.join(rng.choice(folders), f"dir-{i}")
            os.mkdir(folder)
            folders.append(folder)
        path = os.path.join(rng.choice(folders), f"file-{i}")
        size = rng.choice([0, 1, 100, 4095, 4096, 4097, 20_000, 70_000])
        write_file(path, rng.randbytes(size))
        os.chmod(path, rng.choice([0o644, 0o600, 0o755, 0o444]))
    if special:
        write_file(os.path.join(top, "big"), rng.randbytes(3 * MIB + 17))
        os.link(os.path.join(top, "big"), os.path.join(folders[-1], "hard"))
        os.symlink("big", os.path.join(top, "link"))
        os.symlink("no/such/thing", os.path.join(top, "dangling"))
        os.symlink("x" * 1000, os.path.join(top, "long-link"))
        os.mkdir(os.path.join(top, "empty folder "))
        os.mkfifo(os.path.join(top, "fifo"))
        write_file(os.path.join(os.fsencode(top), b"odd\n\xff\xfe name"),
                   b"odd")
        with open(os.path.join(top, "sparse"), "wb") as f:
            f.truncate(10 * MIB)
            f.seek(5 * MIB)
            f.write(b"middle")
        attributed = os.path.join(top, "attributed")
        write_file(attributed, b"a")
        os.setxattr(attributed, "user.note", b"remember")
        os.setxattr(attributed, "user.empty", b"")
        os.setxattr(folders[1], "user.folder", bytes(range(200)))
    for i, (folder, _, names) in enumerate(os.walk(top, topdown=False)):
        for j, name in enumerate(names):
            when = 1_500_000_000_123_456_789 + (i * 1000 + j) * 1_000_000_007
            os.utime(os.path.join(folder, name), ns=(when, when),
                     follow_symlinks=False)
        when = 1_400_000_000_987_654_321 + i * 1_000_000_009
        os.utime(folder, ns=(when, when))


# --- system calls Python lacks ---------------------------------------------

AT_FDCWD = -100
RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16


def _failed(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def renameat2(old, new, flags):
    _failed(LIBC.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD,
                           os.fsencode(new), flags))


def fallocate(fd, mode, offset, length):
    LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64,
                               ctypes.c_int64]
    _failed(LIBC.fallocate(fd, mode, offset, length))


def prctl(option, value):
    LIBC.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    _failed(LIBC.prctl(option, value, 0, 0, 0))


# --- processes -------------------------------------------------------------

def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    rest = f.read().rsplit(b")", 1)[1].split()
            except (OSError, IndexError):
                continue
            if int(rest[1]) == pid:
                found.append((int(name), rest[0].decode()))
    return found


def descendants_of(pid):
    found = []
    for child, _ in children_of(pid):
        found += descendants_of(child) + [child]
    return found


def wait_until(condition, seconds=60, what="what was waited for"):
    """Poll; the limit only guards against hanging."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"{what}: did not happen in {seconds} s")
        time.sleep(0.05)


def in_parallel(*functions):
    """Run each in a process of its own; report the first that fails."""
    running = []
    for function in functions:
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(out)
            status = 0
            try:
                function()
            except BaseException as e:
                os.write(into, f"{type(e).__name__}: {e}".encode()[:4000])
                status = 1
            os._exit(status)
        os.close(into)
        running.append((pid, out))
    problems = []
    for pid, out in running:
        with open(out, "rb") as f:
            said = f.read().decode(errors="replace")
        _, status = os.waitpid(pid, 0)
        if status:
            problems.append(said or f"ended with wait status {status}")
    if problems:
        raise Failure(f"{len(problems)} of {len(running)} processes: "
                      + problems[0])


def run(*argv, cwd=None, expect=0, env=None, timeout=None, preexec=None,
        stdin=subprocess.DEVNULL, input=None):
    """Run a program; fail unless it ends with the expected status."""
    source = {"input": input} if input is not None else {"stdin": stdin}
    argv = [os.fspath(a) for a in argv]
    done = subprocess.run(argv, cwd=cwd, capture_output=True, timeout=timeout,
                          env={**os.environ, **(env or {})},
                          preexec_fn=preexec, **source)
    done.out = done.stdout.decode(errors="replace")
    done.err = done.stderr.decode(errors="replace")
    allowed = expect if isinstance(expect, (tuple, set, list)) else (expect,)
    if expect is not None and done.returncode not in allowed:
        raise Failure(f"`{' '.join(map(str, argv))}` ended with "
                      f"{done.returncode}, not {expect}: "
                      f"{shorten((done.err or done.out).strip()[-1500:])}")
    return done


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def need_true_memory():
    """Sanitizers keep freed memory, to catch who still uses it."""
    if float(os.environ.get("TUSK_TEST_SLOW", "1")) > 1:
        raise Skip("memory cannot be judged under a sanitizer")


def as_user(uid, gid, groups=()):
    """A preexec function that becomes that user (root only)."""
    def become():
        os.setgroups(list(groups))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    return become


def call_as(uid, gid, function, groups=()):
    """Run function in a process of another user; its failure is ours."""
    def both():
        as_user(uid, gid, groups)()
        function()
    in_parallel(both)


# --- mounts ----------------------------------------------------------------

def mount_points(below=None):
    found = []
    with open("/proc/self/mountinfo", "rb") as f:
        for line in f:
            raw = line.split()[4]
            path = raw.replace(b"\\040", b" ").replace(b"\\012", b"\n")
            path = os.fsdecode(path.replace(b"\\011", b"\t")
                               .replace(b"\\134", b"\\"))
            if below is None or path == below or \
                    path.startswith(below + "/"):
                found.append(path)
    return found


def detach(path):
    tool = ["umount", "-l"] if os.geteuid() == 0 else \
        ["fusermount3", "-u", "-z", "-q"]
    subprocess.run(tool + [path], stdin=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=60)


class Case:
    """One run of one test: its folders, its container, its mount."""

    def __init__(self, top, config, tusk, on=None, long=False):
        self.top, self.config, self.binary = top, config, tusk
        self.on, self.long = on, long
        self.is_root = os.geteuid() == 0
        self.daemon = None          # pid of the mount's daemon
        self.status = {}            # pid -> exit status of ended daemons
        self.known = set()
        self.mounts = 0
        self.container = self.path("c.tusk")
        self.point = self.path("mnt")
        self.ref = self.path("ref")
        self.key = self.path("password")
        os.mkdir(self.ref)
        os.mkdir(self.point)
        write_file(self.key, PASSWORD.encode())
        self.dir = os.path.join(on or self.point, "work")
        self.mount_options = []

    def path(self, name):
        return os.path.join(self.top, name)

    # the program

    def tusk(self, *args, expect=0, env=None, stdin=subprocess.DEVNULL,
             input=None, preexec=None, timeout=300):
        done = run(self.binary, *args, expect=expect, env=env, stdin=stdin,
                   input=input, preexec=preexec, timeout=timeout)
        if done.returncode < 0:
            raise Failure(f"tusk {args[0]} was killed by signal "
                          f"{-done.returncode}: {shorten(done.err)}")
        return done

    def create(self, *extra, container=None, key=None, config=None, **kwargs):
        return self.tusk("create", "--password-file", key or self.key,
                         "--no-recovery-key", "--kdf-time", "0.05",
                         "--kdf-memory", "16M",
                         *(config or self.config).args(), *extra,
                         container or self.container, **kwargs)

    def try_mount(self, *extra, container=None, point=None, key=None,
                  **kwargs):
        """`tusk mount`, whatever comes of it."""
        kwargs.setdefault("expect", None)
        return self.tusk("mount", "--password-file", key or self.key,
                         *self.mount_options, *extra,
                         container or self.container, point or self.point,
                         **kwargs)

    def mount(self, *extra, **kwargs):
        """Mount; afterwards self.daemon is the new daemon's pid."""
        before = {pid for pid, _ in children_of(os.getpid())}
        kwargs["expect"] = 0
        done = self.try_mount(*extra, **kwargs)
        after = {pid for pid, _ in children_of(os.getpid())}
        new = after - before - self.known
        if len(new) != 1:
            raise Failure(f"tusk mount left {len(new)} processes, not one")
        self.daemon = new.pop()
        self.known.add(self.daemon)
        point = kwargs.get("point") or self.point
        if not os.path.ismount(point):
            raise Failure(f"tusk mount ended with 0 and {point} is no mount")
        self.mounts += 1
        return done

    def umount(self, point=None, daemon=None, status=0):
        self.tusk("umount", point or self.point)
        point = point or self.point
        if point in mount_points(self.top):
            raise Failure("tusk umount ended with 0 and the mount is there")
        self.ended(daemon or self.daemon, status)

    def ended(self, daemon, status=0, seconds=120):
        """Wait for a daemon; fail unless it ends with that status."""
        def gone():
            pid, got = os.waitpid(daemon, os.WNOHANG)
            if pid:
                self.status[daemon] = os.waitstatus_to_exitcode(got)
            return pid != 0
        if daemon not in self.status:
            wait_until(gone, seconds, "the daemon's end")
        if daemon == self.daemon:
            self.daemon = None
        if status is not None and self.status[daemon] != status:
            raise Failure(f"the daemon ended with {self.status[daemon]}, "
                          f"not {status}")

    def alive(self, what="this"):
        """The daemon is there and answers."""
        if self.daemon is None:
            return
        pid, got = os.waitpid(self.daemon, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(got)
            self.status[self.daemon], self.daemon = code, None
            raise Failure(f"after {what} the daemon is gone, status {code}")
        os.statvfs(self.point)  # what stat(2) says is cached

    def kill(self, number=signal.SIGKILL):
        daemon = self.daemon
        os.kill(daemon, number)
        if number == signal.SIGKILL:
            self.ended(daemon, -signal.SIGKILL)

    def remount(self, *extra):
        """Unmount and mount again: what is read then comes from the disk."""
        if not self.on:
            self.umount()
            self.mount(*extra)

    def crash(self):
        """Kill the daemon and mount what is in the container."""
        self.kill()
        self.tusk("umount", self.point)
        self.mount()

    def check(self, expect=0, container=None):
        return self.tusk("check", "--data", "--password-file", self.key,
                         container or self.container, expect=expect)

    # before and after

    def setup(self, *create):
        """A container, mounted, with the test's own folder in it."""
        if not self.on:
            self.create(*create)
            self.mount()
        os.mkdir(self.dir)

    def finish(self):
        """What holds after each test: a clean end and a clean container."""
        if self.on or not self.mounts:
            return
        if self.daemon is not None:
            self.alive("the test")
            self.umount()
        if os.path.exists(self.container):
            self.check()

    def stats(self):
        """By a process of its own: one that opens twice within 100 ms gets
        the same numbers, or cp and tar would find the file changed."""
        return json.loads(run("cat", os.path.join(self.point, "stats.json"))
                          .out)


def loop_ext4(case, name, size):
    """A small ext4 of its own as a host, mounted; its path."""
    need("mkfs.ext4")
    image, where = case.path(name + ".img"), case.path(name)
    with open(image, "wb") as f:
        f.truncate(size)
    run("mkfs.ext4", "-q", "-F", "-m", "0", image)
    os.mkdir(where)
    done = run("mount", "-o", "loop", image, where, expect=None)
    if done.returncode:
        raise Skip("no loop mounts here: " + done.err.strip())
    return where


def small_tmpfs(case, name, size):
    where = case.path(name)
    os.mkdir(where)
    done = run("mount", "-t", "tmpfs", "-o", f"size={size}", "none", where,
               expect=None)
    if done.returncode:
        raise Skip("no tmpfs mounts here: " + done.err.strip())
    return where


def main_error(message):
    print(message, file=sys.stderr)
    sys.exit(2)
