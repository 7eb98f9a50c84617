# SPDX-License-Identifier: GPL-3.0-or-later
"""tusk key: changing a password, and its cost (cases K01, K03)."""

import os
import shutil
import subprocess
import time

from kit import (COST, DONE, IN_USE, USAGE, WRONG, case, check, equal)

CHANGE = ["key", "change", *COST]


@case
def k01_change(t):
    t.create()
    done = t.good(*CHANGE, "--password-file", "pw", "--new-password-file",
                  "new", "c.tusk")
    check(any("re-encryption" in line for line in done.lines),
          f"says nothing of old copies: {done}")
    check(t.opens("new") and not t.opens("pw"), "not changed")
    t.good(*CHANGE, "--password-file", "new", "--new-password-file", "pw",
           "c.tusk")
    check(t.opens("pw") and not t.opens("new"), "not changed back")


@case
def k01_the_same_file_for_both_is_refused(t):
    t.create()
    os.symlink("pw", "link")
    os.link("pw", "hard")
    for other in ("pw", "./pw", "link", "hard"):
        t.bad(USAGE, *CHANGE, "--password-file", "pw", "--new-password-file",
              other, "c.tusk", says="same file")
    fd = os.open("pw", os.O_RDONLY)
    t.bad(USAGE, *CHANGE, "--password-file", "pw", "--new-password-fd",
          str(fd), "c.tusk", pass_fds=[fd], says="same file")
    os.close(fd)
    check(t.opens("pw"), "changed")


@case
def k01_the_old_password_as_new_is_refused_unless_forced(t):
    t.create()
    shutil.copy("pw", "copy")
    t.bad(USAGE, *CHANGE, "--password-file", "pw", "--new-password-file",
          "copy", "c.tusk", says="--force")
    t.good(*CHANGE, "--force", "--password-file", "pw",
           "--new-password-file", "copy", "c.tusk")
    check(t.opens("pw"), "does not open any more")


@case
def k01_two_lines_of_one_descriptor(t):
    t.create()
    done = t.good(*CHANGE, "--password-fd", "0", "--new-password-fd", "0",
                  "c.tusk", input=b"correct horse\r\nbattery staple\r\n")
    check(not any("first line" in line for line in done.lines), f"{done}")
    check(t.opens("new"), "not changed")
    t.bad(USAGE, *CHANGE, "--password-fd", "0", "--new-password-fd", "0",
          "c.tusk", input=b"battery staple\n", says="no password")
    check(t.opens("new"), "changed")


@case
def k01_a_wrong_old_password_changes_nothing(t):
    t.create()
    shutil.copy("c.tusk", "before")
    t.bad(WRONG, *CHANGE, "--password-file", "wrong", "--new-password-file",
          "new", "c.tusk", says="wrong password")
    for key in ("missing", "/dev/null"):
        t.bad(USAGE, *CHANGE, "--password-file", "pw", "--new-password-file",
              key, "c.tusk", says=key)
    with open("c.tusk", "rb") as a, open("before", "rb") as b:
        check(a.read() == b.read(), "the container was changed")


@case
def k03_cost_is_shown_and_can_be_changed(t):
    done = t.create()
    check("--kdf-memory" in done.lines[0], f"no warning: {done}")
    slot = t.good("key", "list", "--json", "c.tusk").json()["slots"][0]
    equal((slot["kind"], slot["kdf"], slot["memory_kib"], slot["lanes"]),
          ("password", "argon2id", 8192, 4), "slot")
    t.good("key", "change", "--kdf-memory", "64M", "--kdf-time", "0.5",
           "--force", "--password-file", "pw", "--new-password-fd", "0",
           "c.tusk", input=b"correct horse")
    slot = t.good("key", "list", "--json", "c.tusk").json()["slots"][0]
    equal(slot["memory_kib"], 65536, "memory")
    check("64 MiB" in t.good("key", "list", "c.tusk").out.decode(), "list")
    for option, value in (("--kdf-memory", "4M"), ("--kdf-time", "0")):
        t.bad(USAGE, "key", "change", option, value, "--password-file", "pw",
              "--new-password-file", "new", "c.tusk", says=option)


@case
def k03_a_wrong_password_takes_as_long_as_the_right_one(t):
    t.good("create", "--kdf-time", "0.4", "--no-recovery-key",
           "--password-file", "pw", "c.tusk")
    times = {}
    for key in ("pw", "wrong", "pw", "wrong"):
        start = time.monotonic()
        t.opens(key)
        took = time.monotonic() - start
        times[key] = min(took, times.get(key, took))
    check(times["wrong"] < 3 * times["pw"] + 0.5, f"{times}")


@case
def key_change_killed_at_any_time_leaves_one_password(t):
    t.create()
    keys = ["pw", "new"]
    changed = 0
    for _ in range(12 * t.rounds):
        process = subprocess.Popen(
            [t.binary, *CHANGE, "--password-file", keys[0],
             "--new-password-file", keys[1], "c.tusk"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        delay = t.random.uniform(0.03, 0.3)
        time.sleep(delay)
        process.kill()
        process.wait()
        which = [key for key in keys if opens_in_spite(t, key)]
        equal(len(which), 1, f"killed after {delay} s: opens with {which}")
        if which[0] != keys[0]:
            keys.reverse()
            changed += 1
        if process.returncode == 0:
            continue
        # A header copy that was being written is mended by the next change.
        t.good(*CHANGE, "--force", "--password-file", keys[0],
               "--new-password-fd", "0", "c.tusk",
               input=open(keys[0], "rb").read())
        check(t.opens(keys[0]), "not mended")
    print(f"# {changed} of {12 * t.rounds} were changed")


def opens_in_spite(t, key):
    """Also if one copy of the header is damaged, which is status 4."""
    done = t.run("check", "--password-file", key, "c.tusk")
    return done.status != WRONG


@case
def key_list_needs_no_password(t):
    t.create()
    text = t.good("key", "list", "c.tusk").out.decode()
    check(text.startswith(" 0  password, argon2id"), f"{text!r}")
    os.chmod("c.tusk", 0o400)
    t.good("key", "list", "c.tusk")
