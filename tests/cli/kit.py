# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command line tests stand on: cases, and running the program.

Each case gets an empty folder, is its current directory while it runs, and
must leave nothing of the program behind.  Every run of the program is a
session of its own without a terminal and with /dev/null as stdin, unless the
case says otherwise, and ends in time.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

DONE, FAILED, USAGE, WRONG, DAMAGED, IN_USE, NO_CONTAINER = range(7)
NO_SPACE, UNSUPPORTED, INTERRUPTED = 9, 10, 130

MIB = 1 << 20
SIZE = 32 * MIB         # of a new container
PASSWORD = b"correct horse"
# Cheap, so that hundreds of runs take seconds.
COST = ["--kdf-time", "0.01", "--kdf-memory", "8M"]

CASES = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


def check(ok, what):
    if not ok:
        raise Failure(what)


def equal(got, want, what):
    check(got == want, f"{what}: {got!r}, not {want!r}")


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


class Done:
    """How a run ended."""

    def __init__(self, args, status, out, err):
        self.args, self.status = args, status
        self.out, self.err = out, err

    @property
    def lines(self):
        return self.err.decode("utf-8", "replace").splitlines()

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        args = " ".join(map(str, self.args))
        return (f"tusk {args}: status {self.status}, stdout "
                f"{self.out[-300:]!r}, stderr {self.err[-600:]!r}")


class Kit:
    def __init__(self, binary, seed):
        self.binary = os.path.abspath(binary)
        self.random = random.Random(seed)
        self.rounds = 10 if os.environ.get("TUSK_TEST_LONG") else 1
        with open("pw", "wb") as f:
            f.write(PASSWORD + b"\n")
        with open("new", "wb") as f:
            f.write(b"battery staple\n")
        with open("wrong", "wb") as f:
            f.write(b"wrong\n")

    def run(self, *args, stdin=subprocess.DEVNULL, input=None, env=None,
            pass_fds=(), before=None, timeout=60, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE):
        if input is not None:
            stdin = subprocess.PIPE
        process = subprocess.Popen(
            [self.binary, *args], stdin=stdin, stdout=stdout, stderr=stderr,
            start_new_session=True, pass_fds=pass_fds, preexec_fn=before,
            env={**os.environ, **(env or {})})
        try:
            out, err = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure(f"tusk {' '.join(map(str, args))}: hangs")
        done = Done(args, process.returncode, out or b"", err or b"")
        self.sane(done)
        return done

    def sane(self, done):
        """What no run may ever do."""
        check(done.status >= 0 or done.status in (-signal.SIGINT,
                                                  -signal.SIGTERM,
                                                  -signal.SIGKILL),
              f"crash: {done}")
        for word in (b"Sanitizer", b"runtime error", b"Assertion"):
            check(word not in done.err, f"report: {done}")
        for line in done.lines:
            check(line.startswith("tusk"), f"odd line: {done}")
            check(line.isprintable(), f"control characters: {done}")
        check(PASSWORD not in done.out + done.err, f"the password: {done}")

    def good(self, *args, **kwargs):
        """It succeeds, and says no more than warnings and notes."""
        done = self.run(*args, **kwargs)
        check(done.status == DONE, f"{done}")
        return done

    def bad(self, status, *args, says="", **kwargs):
        """It fails with one line, and prints no data."""
        done = self.run(*args, **kwargs)
        allowed = status if isinstance(status, tuple) else (status,)
        check(done.status in allowed, f"wanted {status}: {done}")
        check(len(done.lines) == 1, f"not one line: {done}")
        check(says in done.lines[0], f"says no {says!r}: {done}")
        equal(done.out, b"", f"stdout of {done}")
        return done

    def create(self, *args, path="c.tusk", key="pw", **kwargs):
        return self.good("create", *COST, "--no-recovery-key",
                         "--password-file", key, *args, path, **kwargs)

    def opens(self, key, path="c.tusk"):
        """Whether this password is the right one."""
        done = self.run("check", "--password-file", key, path)
        check(done.status in (DONE, WRONG), f"{done}")
        return done.status == DONE


def run_case(function, binary, seed):
    """Its result, '' for success."""
    here = os.getcwd()
    top = tempfile.mkdtemp(prefix="tusk-cli-")
    os.chmod(top, 0o755)
    os.chdir(top)
    try:
        function(Kit(binary, seed))
        return ""
    except Failure as e:
        return str(e)
    except Skip as e:
        raise e
    except Exception:
        return traceback.format_exc()
    finally:
        os.chdir(here)
        shutil.rmtree(top, ignore_errors=True)


def main(binary, seed, pattern):
    passed = failed = skipped = 0
    for function in CASES:
        if pattern and pattern not in function.__name__:
            continue
        try:
            trouble = run_case(function, binary, seed)
        except Skip as e:
            skipped += 1
            print(f"ok {function.__name__} # skip {e}", flush=True)
            continue
        if trouble:
            failed += 1
            print(f"not ok {function.__name__}")
            for line in trouble.splitlines():
                print(f"# {line}")
            print(f"# again: {sys.argv[0]} --tusk {binary} --seed {seed} "
                  f"--only {function.__name__}", flush=True)
        else:
            passed += 1
            print(f"ok {function.__name__}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0
