#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the mounted file system, through the kernel.

    tests/mount/run.py --tusk build/tools/tusk [NAME...]    those that match
    tests/mount/run.py --on DIR                             on a plain folder

Output: a line for each test, `ok NAME`, `not ok NAME: why` (followed by the
command that repeats it) or `skip NAME: why`, and at the end
`N passed, M failed, K skipped`.  Status 0: none failed; 77: none could run.
"""

import argparse
import faulthandler
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import kit

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["files", "names", "programs", "commands", "durable", "space",
           "parallel", "virtual"]
MEMORY_FILE_SYSTEMS = {"tmpfs", "ramfs"}


def arguments():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--tusk", help="the program under test")
    p.add_argument("--on", metavar="DIR",
                   help="run what any folder can do on this one")
    p.add_argument("--as-user", metavar="NAME", nargs="?", const="nobody",
                   help="started by root: run all as this user (nobody)")
    p.add_argument("--work", metavar="DIR",
                   default=os.environ.get("TUSK_TEST_DIR", "/var/tmp"),
                   help="where containers are made; a real disk (/var/tmp)")
    p.add_argument("--scheme", metavar="S",
                   default=os.environ.get("TUSK_TEST_SCHEME"),
                   help="only this scheme (as in test names), or `default`")
    p.add_argument("--threads", action="store_true",
                   default=bool(os.environ.get("TUSK_TEST_THREADS")),
                   help="only what drives many threads")
    p.add_argument("--module", action="append", choices=MODULES)
    p.add_argument("--long", action="store_true",
                   default=bool(os.environ.get("TUSK_TEST_LONG")),
                   help="many more rounds")
    p.add_argument("--slow", type=float, metavar="FACTOR",
                   default=float(os.environ.get("TUSK_TEST_SLOW", "1")),
                   help="all time limits times this (sanitizers)")
    p.add_argument("--keep", action="store_true",
                   help="leave the folders of failed tests")
    p.add_argument("--list", action="store_true", help="only print names")
    p.add_argument("names", nargs="*", help="run tests whose name has this")
    return p.parse_args()


def become_user(options):
    """Start again as another user, with copies that it can read."""
    user = pwd.getpwnam(options.as_user)
    top = tempfile.mkdtemp(prefix="tusk-user-", dir=options.work)
    os.chmod(top, 0o755)
    try:
        for name in os.listdir(HERE):
            if name.endswith(".py"):
                shutil.copy(os.path.join(HERE, name), top)
        argv = [system_python(), os.path.join(top, "run.py")]
        if options.tusk:
            binary = os.path.join(top, "tusk")
            shutil.copy(options.tusk, binary)
            argv += ["--tusk", binary]
        work = os.path.join(top, "work")
        os.mkdir(work)
        os.chown(work, user.pw_uid, user.pw_gid)
        argv += ["--work", work, "--slow", str(options.slow)]
        for flag in ("long", "threads", "keep"):
            if getattr(options, flag):
                argv.append("--" + flag)
        for module in options.module or []:
            argv += ["--module", module]
        if options.scheme:
            argv += ["--scheme", options.scheme]
        if options.on:
            argv += ["--on", options.on]
        again = f"--tusk {options.tusk} " if options.tusk else ""
        env = {**os.environ, "HOME": work, "USER": options.as_user,
               "LOGNAME": options.as_user,
               "TUSK_TEST_REPEAT": f"{again}--as-user {options.as_user}"}
        groups = os.getgrouplist(options.as_user, user.pw_gid)
        return subprocess.run(
            argv + options.names, env=env, cwd="/",
            preexec_fn=kit.as_user(user.pw_uid, user.pw_gid, groups)
        ).returncode
    finally:
        if not options.keep:
            shutil.rmtree(top, ignore_errors=True)


def system_python():
    """One that every user can start."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") \
        else sys.executable


def unusable(options):
    """Why nothing can be mounted here, or None."""
    if options.on:
        return None
    if not os.path.exists("/dev/fuse"):
        return "there is no /dev/fuse"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened by this user"
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        return "fusermount3 is not installed"
    return None


def file_system_of(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path],
                          capture_output=True, text=True).stdout.strip()


def chosen(options):
    """(test, config, name) for all that is to run."""
    for module in options.module or MODULES:
        __import__(module)
    runs = []
    for function in kit.TESTS:
        configs = kit.CONFIGS if function.every_scheme and not options.on \
            else [kit.DEFAULT]
        for config in configs:
            name = function.__name__
            if function.every_scheme and not options.on:
                name += f"[{config.name}]"
            wanted = options.scheme
            if wanted == "default":
                wanted = kit.DEFAULT.name
            if wanted and config.name != wanted:
                continue
            if options.threads and not function.threads:
                continue
            if options.names and not any(n in name for n in options.names):
                continue
            runs.append((function, config, name))
    return runs


def not_here(function, options):
    if options.on and not function.folder:
        return "needs a mount"
    if function.root and os.geteuid() != 0:
        return "needs root"
    if function.user and os.geteuid() == 0:
        return "needs an ordinary user"
    return None


def folder_on(options, top):
    """The test's own folder in the one that --on names."""
    return os.path.join(options.on, "-".join(top.split("/")[-2:]))


def child(function, config, options, top, report):
    """The process that runs one test."""
    os.setsid()
    kit.prctl(kit.PR_SET_CHILD_SUBREAPER, 1)
    faulthandler.register(signal.SIGUSR1)
    os.umask(0o022)
    verdict, why = "ok", ""
    try:
        case = kit.Case(top, config, options.tusk, options.on, options.long)
        if options.on:
            case.dir = folder_on(options, top)
        function(case)
        case.finish()
    except kit.Skip as e:
        verdict, why = "skip", str(e)
    except kit.Failure as e:
        where = traceback.extract_tb(e.__traceback__)
        lines = [f.lineno for f in where if not f.filename.endswith(
            ("run.py", "kit.py"))]
        verdict, why = "not ok", str(e)
        if lines:
            why += f" (line {lines[-1]})"
    except BaseException as e:
        where = traceback.extract_tb(e.__traceback__)
        lines = [f.lineno for f in where if not f.filename.endswith(
            ("run.py", "kit.py"))]
        verdict = "not ok"
        why = f"{type(e).__name__}: {e} (line {lines[-1] if lines else '?'})"
    report.write(f"{verdict}\n{why}\n")
    report.flush()
    os._exit(0)


def run_one(function, config, options, top):
    """Run a test in a process of its own and watch it: (verdict, why)."""
    os.mkdir(top, 0o755)
    os.chmod(top, 0o755)
    limit = function.timeout * options.slow * (20 if options.long else 1)
    with open(top + ".said", "w+") as report:
        pid = os.fork()
        if pid == 0:
            child(function, config, options, top, report)
        end = time.monotonic() + limit
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGUSR1)
                time.sleep(1)
                clean(pid, top)
                return "not ok", f"hangs: not done in {limit:.0f} s"
            time.sleep(0.005)
        report.seek(0)
        said = report.read().split("\n", 1)
    clean(None, top)
    if len(said) != 2:
        return "not ok", "the test's process ended without a verdict"
    return said[0], " ".join(said[1].split())


def clean(pid, top):
    """End what the test left: daemons first, so that nothing can hang."""
    left = kit.descendants_of(pid) if pid else []
    if pid:
        left.append(pid)
    left += [p for p in kit.descendants_of(os.getpid()) if p not in left]
    for process in left:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            pass
    for point in reversed(kit.mount_points(top)):
        kit.detach(point)
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                if not kit.children_of(os.getpid()):
                    break
                time.sleep(0.02)
        except ChildProcessError:
            break
    if os.path.exists(top + ".said"):
        os.unlink(top + ".said")


def repeat(options, name):
    words = ["tests/mount/run.py"]
    if "TUSK_TEST_REPEAT" in os.environ:
        words.append(os.environ["TUSK_TEST_REPEAT"])
    elif options.tusk:
        words += ["--tusk", options.tusk]
    if options.on:
        words += ["--on", options.on]
    return " ".join(words + [f"'{name}'"])


def main():
    options = arguments()
    sys.path.insert(0, HERE)
    runs = chosen(options)
    if options.list:
        print("\n".join(name for _, _, name in runs))
        return 0
    if not options.on and not options.tusk:
        kit.main_error("run.py: say --tusk PROGRAM or --on DIR")
    if options.tusk:
        options.tusk = os.path.abspath(options.tusk)
        if not os.access(options.tusk, os.X_OK):
            kit.main_error(f"run.py: {options.tusk}: no program")
    if options.on:
        options.on = os.path.abspath(options.on)
    reason = unusable(options)
    if reason:
        print(f"0 passed, 0 failed, {len(runs)} skipped: {reason}")
        return 77
    if options.as_user and os.geteuid() == 0:
        return become_user(options)
    if file_system_of(options.work) in MEMORY_FILE_SYSTEMS:
        print(f"# {options.work} is in memory; --work DIR on a disk says more")

    kit.prctl(kit.PR_SET_CHILD_SUBREAPER, 1)
    base = tempfile.mkdtemp(prefix="tusk-mount-", dir=options.work)
    os.chmod(base, 0o755)
    count = {"ok": 0, "not ok": 0, "skip": 0}
    # Whoever stops us (a test runner's time limit, a terminal) must not find
    # mounts left over.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(130))
    try:
        for i, (function, config, name) in enumerate(runs):
            top = os.path.join(base, str(i))
            why = not_here(function, options)
            verdict = "skip"
            start = time.monotonic()
            if not why:
                verdict, why = run_one(function, config, options, top)
            count[verdict] += 1
            line = f"{verdict} {name}"
            if why:
                line += f": {why}"
            elif verdict == "ok":
                line += f"  ({time.monotonic() - start:.1f} s)"
            print(line, flush=True)
            if verdict == "not ok":
                print(f"    repeat: {repeat(options, name)}", flush=True)
            if not (options.keep and verdict == "not ok"):
                shutil.rmtree(top, ignore_errors=True)
                if options.on:
                    subprocess.run(["rm", "-rf", folder_on(options, top)])
    finally:
        clean(None, base)
        if not options.keep:
            shutil.rmtree(base, ignore_errors=True)
    print(f"{count['ok']} passed, {count['not ok']} failed, "
          f"{count['skip']} skipped")
    if count["not ok"]:
        return 1
    return 0 if count["ok"] else 77


if __name__ == "__main__":
    sys.exit(main())
