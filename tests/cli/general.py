# SPDX-License-Identifier: GPL-3.0-or-later
"""Help, output, languages, descriptors and locks: all commands alike."""

import fcntl
import os
import re
import shutil
import struct
import subprocess
import threading
import time

from kit import (COST, DONE, FAILED, IN_USE, NO_SPACE, UNSUPPORTED, USAGE,
                 WRONG, Skip, case, check, equal)

ROW = re.compile(r"^  ([a-z]+(?: [a-z]+)?) {2,}\S", re.M)
OPTION = re.compile(r"^  (?:-(\w), |    )--([a-z-]+)(?: ([A-Z]\S*|on\|off))?",
                    re.M)


def all_commands(t):
    names = ROW.findall(t.good("help").out.decode())
    names = [name.split() for name in names if name != "help"]
    check(["create"] in names and ["key", "change"] in names, f"{names}")
    return names


@case
def m09_help_and_version(t):
    text = t.good("help").out
    for args in (["--help"], ["-h"]):
        equal(t.good(*args).out, text, f"{args}")
    for args in (["help"], ["--version"], ["-V"], ["key", "--help"],
                 ["help", "key"]):
        done = t.good(*args)
        check(done.out and not done.err, f"{done}")
    version = t.good("--version").out.decode()
    check(re.search(r"^tusk \d", version) and "libgcrypt" in version, version)
    for name in all_commands(t):
        text = t.good(*name, "--help").out.decode()
        equal(t.good("help", *name).out.decode(), text, f"help {name}")
        check(text.startswith("Usage: tusk " + " ".join(name)), text)
        for line in text.splitlines():
            check(len(line) < 80, f"{name}: {line!r} is too long")
        for code in (0, 1, 2, 3, 12, 130):
            check(re.search(rf"^ +{code}  ", text, re.M), f"{name}: {code}")


@case
def help_and_parser_agree(t):
    for name in all_commands(t):
        text = t.good(*name, "--help").out.decode()
        options = OPTION.findall(text)
        check(("h", "help", "") in options, f"{name}: {options}")
        for letter, option, value in options:
            if option == "help":
                continue
            if value:
                t.bad(USAGE, *name, f"--{option}",
                      says=f"--{option} needs a value")
            else:
                t.bad(USAGE, *name, f"--{option}=x",
                      says=f"--{option} takes no value")
            if letter and value:
                t.bad(USAGE, *name, f"-{letter}", says="needs a value")


ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))


@case
def manual_and_help_agree(t):
    for word in sorted({name[0] for name in all_commands(t)}):
        helped = set()
        for name in all_commands(t):
            if name[0] == word:
                text = t.good(*name, "--help").out.decode()
                helped |= {option for _, option, _ in OPTION.findall(text)}
        page = os.path.join(ROOT, "tools", "man", f"tusk-{word}.1.scd")
        with open(page, encoding="utf-8") as f:
            text = f.read().split("# OPTIONS", 1)[1].split("\n# ", 1)[0]
        heads = "".join(re.findall(r"^\*-.*$", text, re.M))
        equal(set(re.findall(r"\*--([a-z-]+)\*", heads)), helped,
              f"options in the manual of {word}")
    with open(os.path.join(ROOT, "tools", "man", "tusk.1.scd"),
              encoding="utf-8") as f:
        text = f.read()
    codes = re.findall(r"^\*(\d+)\*\t(.*)$", text, re.M)
    helped = t.good("help").out.decode().split("Exit status:\n")[1]
    equal(codes, re.findall(r"^ +(\d+)  (.*)$", helped, re.M),
          "exit codes in the manual")


def completed(t, *words):
    """What bash offers after these words."""
    script = os.path.join(ROOT, "tools", "completions", "tusk.bash")
    os.makedirs("bin", exist_ok=True)
    if not os.path.exists("bin/tusk"):
        os.symlink(t.binary, "bin/tusk")
    done = subprocess.run(
        ["bash", "-c", 'script=$1; shift; . "$script"; COMP_WORDS=("$@"); '
         'COMP_CWORD=$(($# - 1)); _tusk; printf "%s\\n" "${COMPREPLY[@]}"',
         "-", script, "tusk", *words],
        env={**os.environ, "PATH": os.path.abspath("bin") + ":" +
             os.environ["PATH"]}, capture_output=True, text=True, timeout=60)
    equal(done.stderr, "", "stderr of the completion")
    return set(done.stdout.split())


@case
def completions_offer_what_help_names(t):
    if not shutil.which("bash"):
        raise Skip("no bash")
    names = all_commands(t)
    check({name[0] for name in names} | {"help"} <= completed(t, ""),
          f"commands: {completed(t, '')}")
    equal(completed(t, "inf"), {"info"}, "inf")
    equal(completed(t, "key", ""), {"list", "change"}, "key")
    equal(completed(t, "help", "key", ""), {"list", "change"}, "help key")
    equal(completed(t, "create", "--integrity", ""), {"on", "off"}, "values")
    check("pw" in completed(t, "info", "p"), "files")
    for name in names:
        text = t.good(*name, "--help").out.decode()
        equal(completed(t, *name, "--"),
              {"--" + option for _, option, _ in OPTION.findall(text)},
              f"options of {name}")


@case
def m09_usage_errors(t):
    for args in ([], ["frobnicate"], ["--frob"], ["key"], ["key", "frob"],
                 ["help", "frob"], ["help", "info", "x"], ["info"],
                 ["info", "a", "b"], ["info", "--frob", "a"],
                 ["info", "-x", "a"], ["check"], ["key", "list"],
                 ["key", "change"], ["create"], ["Info", "a"], ["inf", "a"],
                 ["info "], [""], ["key change", "a"]):
        t.bad(USAGE, *args)


@case
def options_that_wait_for_later_versions_are_refused(t):
    t.create()
    for option in ("--repair", "--dry-run"):
        t.bad(UNSUPPORTED, "check", option, "--password-file", "pw",
              "c.tusk", says=option)


@case
def json_parses_and_numbers_are_numbers(t):
    t.create("--label", "L")
    info = t.good("info", "--json", "c.tusk").json()
    check(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
                       info["uuid"]), info["uuid"])
    equal((info["version"], info["format_version"], info["in_use"],
           info["holder_pid"], info["container"]),
          (1, 0, False, 0, "c.tusk"), "info")
    equal(info["size_bytes"], os.stat("c.tusk").st_size, "size")
    result = t.good("check", "--json", "--password-file", "pw",
                    "c.tusk").json()
    equal((result["errors"], result["clean"], result["findings"]),
          (0, True, []), "check")
    check(result["unmounted_in_order"], "not unmounted in order")
    equal(result["folders"], 1, "folders")


def generated_locales():
    """de_DE and tr_TR for LOCPATH, if this system can make them."""
    if not shutil.which("localedef"):
        return {}
    os.mkdir("locales")
    for name in ("de_DE", "tr_TR"):
        made = subprocess.run(["localedef", "-i", name, "-f", "UTF-8",
                               f"locales/{name}.UTF-8"], capture_output=True)
        if made.returncode > 1:
            return {}
    return {"LOCPATH": os.path.abspath("locales")}


@case
def m09_languages_change_no_output(t):
    path = generated_locales()
    t.create("--kdf-time", "0.011", env={**path, "LC_ALL": "de_DE.UTF-8"})
    for command in (["info", "--json", "c.tusk"], ["info", "c.tusk"],
                    ["key", "list", "--json", "c.tusk"],
                    ["check", "--json", "--password-file", "pw", "c.tusk"],
                    ["check", "--password-file", "pw", "c.tusk"],
                    ["--version"], ["help"]):
        outs = {t.good(*command, env={**path, "LC_ALL": lang,
                                      "LANGUAGE": lang}).out
                for lang in ("C", "de_DE.UTF-8", "tr_TR.UTF-8")}
        equal(len(outs), 1, f"different outputs of {command}")
    errs = {t.bad(DONE + 6, "info", "pw", env={**path, "LC_ALL": lang}).err
            for lang in ("C", "de_DE.UTF-8", "tr_TR.UTF-8")}
    equal(len(errs), 1, "different messages")
    for lang in ("de_DE.UTF-8", "tr_TR.UTF-8"):
        t.bad(USAGE, "create", "--kdf-time", "0,5", "x",
              env={**path, "LC_ALL": lang}, says="0.5")
        t.bad(USAGE, "create", "--size", "16m", "x", says="32M",
              env={**path, "LC_ALL": lang})
    if not path:
        print("# only the names of the languages: localedef lacks them")


@case
def output_that_cannot_be_written_is_no_success(t):
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    t.create()
    for command in (["info", "c.tusk"], ["info", "--json", "c.tusk"],
                    ["key", "list", "c.tusk"], ["help"], ["--version"],
                    ["info", "--help"],
                    ["check", "--password-file", "pw", "c.tusk"]):
        with open("/dev/full", "wb") as full:
            done = t.run(*command, stdout=full)
        check(done.status in (FAILED, NO_SPACE), f"{done}")
        equal(len(done.lines), 1, f"{done}")


def closing(*fds):
    def close():
        for fd in fds:
            os.close(fd)
    return close


@case
def closed_descriptors_do_not_become_the_container(t):
    t.create()
    before = open("c.tusk", "rb").read()
    for fds in ((2,), (1, 2), (0, 1, 2), (0, 2), (1,)):
        for command, status in (
                (["key", "change", *COST, "--password-file", "wrong",
                  "--new-password-file", "new", "c.tusk"], WRONG),
                (["check", "--password-file", "wrong", "c.tusk"], WRONG),
                (["info", "c.tusk"], None)):
            done = t.run(*command, before=closing(*fds))
            if status is not None:
                equal(done.status, status, f"{done}")
            elif 1 in fds:
                check(done.status != DONE, f"{done}")
    check(open("c.tusk", "rb").read() == before, "the container was changed")


class Holder:
    """Holds a container as a mount does; `serving` as one that works."""

    def __init__(self, path, serving):
        self.file = open(path, "r+b")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        if serving:
            # l_type, l_whence, l_start, l_len, l_pid
            lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0)
            fcntl.fcntl(self.file, 37, lock)        # F_OFD_SETLK

    def close(self):
        self.file.close()


@case
def a_container_in_use(t):
    t.create()
    holder = Holder("c.tusk", serving=True)
    for command in (["check", "--password-file", "pw", "c.tusk"],
                    ["key", "change", *COST, "--password-file", "pw",
                     "--new-password-file", "new", "c.tusk"]):
        start = time.monotonic()
        t.bad(IN_USE, *command, says=f"process {os.getpid()}")
        check(time.monotonic() - start < 10, "waits")
    info = t.good("info", "--json", "c.tusk").json()
    equal((info["in_use"], info["holder_pid"]), (True, os.getpid()), "info")
    check(f"process {os.getpid()}" in
          t.good("info", "c.tusk").out.decode(), "info")
    t.good("key", "list", "c.tusk")
    holder.close()
    check(t.opens("pw"), "does not open")


@case
def a_container_whose_daemon_is_just_ending_is_waited_for(t):
    t.create()
    holder = Holder("c.tusk", serving=False)
    threading.Timer(1, holder.close).start()
    check(t.opens("pw"), "does not open")


@case
def readers_do_not_exclude_each_other(t):
    t.create()
    runs = [subprocess.Popen(
        [t.binary, "check", "--password-file", "pw", "c.tusk"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL) for _ in range(4)]
    equal([run.wait(60) for run in runs], [DONE] * 4, "status")
