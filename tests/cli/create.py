# SPDX-License-Identifier: GPL-3.0-or-later
"""tusk create: a whole container, or nothing."""

import hashlib
import os
import resource
import signal
import stat
import subprocess
import time

from kit import (COST, DONE, FAILED, INTERRUPTED, MIB, NO_SPACE, SIZE,
                 UNSUPPORTED, USAGE, Skip, case, check, equal, need_root)

SCHEMES = ["none", "aes-128-xts", "aes-256-xts", "aes-128-cbc", "aes-256-cbc",
           "aes-128-cbc-elephant", "aes-256-cbc-elephant"]
BASE = ["create", *COST, "--no-recovery-key", "--password-file", "pw"]


def nothing_new(before):
    equal(sorted(os.listdir(".")), before, "files left behind")


@case
def create_in_every_scheme(t):
    for scheme in SCHEMES:
        for sector in ("512", "4096"):
            for integrity in ("on", "off"):
                t.create("--scheme", scheme, "--sector-size", sector,
                         "--integrity", integrity)
                info = t.good("info", "--json", "c.tusk").json()
                equal((info["scheme"], info["sector_size"],
                       info["integrity"]),
                      (scheme, int(sector), integrity == "on"), "info")
                check(t.opens("pw"), "does not open")
                os.unlink("c.tusk")


@case
def create_defaults(t):
    before = sorted(os.listdir("."))
    t.create()
    info = t.good("info", "--json", "c.tusk").json()
    equal((info["scheme"], info["sector_size"], info["integrity"],
           info["label"]), ("aes-256-xts", 4096, True, ""), "info")
    st = os.stat("c.tusk")
    equal(stat.S_IMODE(st.st_mode), 0o600, "mode")
    check(st.st_blocks * 512 >= SIZE, "space is not allocated")
    nothing_new(sorted(before + ["c.tusk"]))


@case
def create_mode_is_0600_under_any_umask(t):
    for umask in (0, 0o277):
        t.create(before=lambda: os.umask(umask))
        equal(stat.S_IMODE(os.stat("c.tusk").st_mode), 0o600, "mode")
        os.unlink("c.tusk")


@case
def create_labels(t):
    for label in ("x", "Fotos für Ämter", "€" * 21, "'\"\\{}"):
        t.create("--label", label)
        equal(t.good("info", "--json", "c.tusk").json()["label"], label,
              "label")
        os.unlink("c.tusk")
    for label in ("x" * 64, "a\nb", "\x1b[31m", b"\xff\xfe"):
        t.bad(USAGE, *BASE, "--label", label, "c.tusk", says="--label")
    check(not os.path.exists("c.tusk"), "a file was made")


@case
def create_refuses_bad_options_before_it_does_anything(t):
    before = sorted(os.listdir("."))
    for options, says in (
            (["--scheme", "rot13"], "aes-256-xts"),
            (["--scheme", ""], "aes-256-xts"),
            (["--sector-size", "1024"], "512"),
            (["--sector-size", "512K"], "512"),
            (["--integrity", "maybe"], "'on'"),
            (["--size", "banana"], "not a size"),
            (["--size", "31M"], "32M"),
            (["--size", "-1"], "not a size"),
            (["--size", "9999999T"], "not a size"),
            (["--kdf-memory", "8191K"], "under 8M"),
            (["--kdf-memory", "5G"], "4G"),
            (["--kdf-time", "0"], "above 0"),
            (["--kdf-time", "0,5"], "not a time"),
            (["--kdf-time", "3600"], "at most"),
            (["--password-fd", "0"], "exclude"),
            (["--nope"], "--nope"),
            (["--password", "secret"], "--password")):
        t.bad(USAGE, *BASE, *options, "c.tusk", says=says)
    for options in (["--recovery-key-file", "r"], ["--header", "h"]):
        t.bad(UNSUPPORTED, *BASE, *options, "c.tusk", says=options[0])
    t.bad(USAGE, *BASE, says="CONTAINER is missing")
    t.bad(USAGE, *BASE, "", says="CONTAINER is empty")
    t.bad(USAGE, *BASE, "a", "b", says="too many")
    nothing_new(before)


@case
def create_refuses_bad_places(t):
    with open("file", "wb") as f:
        f.write(b"precious")
    os.mkdir("folder")
    os.mkfifo("fifo")
    os.symlink("nowhere", "dangling")
    os.symlink("file", "link")
    before = sorted(os.listdir("."))
    for path, says in (
            ("file", "exists"), ("link", "exists"), ("dangling", "exists"),
            ("fifo", "exists"), ("folder", "a folder"), (".", "a folder"),
            ("/", "a folder"), ("new/", "a folder"),
            ("nowhere/c", "does not exist"), ("file/c", "not a folder"),
            ("/dev/null", "exists"), ("/proc/c", ""), ("x" * 256, "long"),
            ("/".join(["x" * 250] * 20), "")):
        t.bad(FAILED, *BASE, path, says=says)
        t.bad(FAILED, *BASE, "--overwrite", path)
    nothing_new(before)
    with open("file", "rb") as f:
        equal(f.read(), b"precious", "content of the file")


@case
def create_without_permission(t):
    def nobody():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
    os.mkdir("locked")
    os.chmod("locked", 0o555)
    os.chmod("pw", 0o644)
    t.bad(FAILED, *BASE, "locked/c", says="permission denied", before=nobody)
    os.chmod("locked", 0o000)
    t.bad(FAILED, *BASE, "locked/c", says="permission denied", before=nobody)
    os.chmod("locked", 0o755)
    equal(os.listdir("locked"), [], "files left behind")


@case
def create_odd_names(t):
    for name in (b"a b", b"-", "ü".encode(), b"\xff\xfe", b"a\nb",
                 b"\x1b[31mred", b"%s%n"):
        t.create(path=name)
        t.good("info", name)
        t.good("info", "--json", name).json()
        t.bad(FAILED, *BASE, name, says="exists")
        os.unlink(name)
    t.create("--", path="-x")
    t.good("info", "--", "-x")


@case
def create_over_a_file_size_limit(t):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * MIB, 16 * MIB))
    before = sorted(os.listdir("."))
    t.bad(FAILED, *BASE, "c.tusk", says="size", before=limit)
    nothing_new(before)


@case
def create_on_a_full_host(t):
    need_root()
    os.mkdir("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20M", "tusk-cli",
                       "small"], capture_output=True).returncode:
        raise Skip("cannot mount a tmpfs")
    try:
        t.bad(NO_SPACE, *BASE, "small/c.tusk", says="space")
        equal(os.listdir("small"), [], "files left behind")
    finally:
        subprocess.run(["umount", "small"], check=True)


def interrupted(t, sig, delay, *options):
    process = subprocess.Popen(
        [t.binary, *BASE, *options, "c.tusk"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True)
    time.sleep(delay)
    process.send_signal(sig)
    process.communicate(timeout=60)
    return process.returncode


@case
def create_interrupted_leaves_no_file(t):
    before = sorted(os.listdir("."))
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        status = interrupted(t, sig, 0.3, "--kdf-time", "30")
        check(status in (-sig, INTERRUPTED), f"status {status}")
        nothing_new(before)
    made = 0
    for _ in range(20 * t.rounds):
        delay = t.random.uniform(0, 0.25)
        status = interrupted(t, signal.SIGINT, delay)
        check(status in (DONE, -signal.SIGINT, INTERRUPTED),
              f"status {status} after {delay} s")
        equal(os.path.exists("c.tusk"), status == DONE,
              f"status {status} after {delay} s: a file")
        if status == DONE:
            made += 1
            check(t.opens("pw"), "does not open")
            os.unlink("c.tusk")
    print(f"# {made} of {20 * t.rounds} were made in time")


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@case
def create_on_a_device(t):
    need_root()
    with open("image", "wb") as f:
        f.truncate(48 * MIB)
    loop = subprocess.run(["losetup", "-f", "--show", "image"],
                          capture_output=True, text=True)
    if loop.returncode:
        raise Skip("no loop device")
    device = loop.stdout.strip()
    try:
        t.bad(USAGE, *BASE, "--size", "64M", device, says="--size")
        t.create(path=device)
        check(t.opens("pw", device), "does not open")
        info = t.good("info", "--json", device).json()
        equal((info["device"], info["size_bytes"]), (True, 48 * MIB), "info")
        before = digest("image")
        t.bad(FAILED, *BASE, device, says="--overwrite")
        equal(digest("image"), before, "content")
        t.create("--overwrite", key="new", path=device)
        check(t.opens("new", device) and not t.opens("pw", device),
              "the old container is still there")
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


@case
def create_on_a_device_that_is_too_small(t):
    need_root()
    with open("image", "wb") as f:
        f.truncate(20 * MIB)
    loop = subprocess.run(["losetup", "-f", "--show", "image"],
                          capture_output=True, text=True)
    if loop.returncode:
        raise Skip("no loop device")
    device = loop.stdout.strip()
    try:
        t.bad((FAILED, NO_SPACE), *BASE, device)
    finally:
        subprocess.run(["losetup", "-d", device], check=True)
