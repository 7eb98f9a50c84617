#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers read by two programs that share nothing but fs/FORMAT.md.

    run.py --tusk TUSK --volume COMPAT-VOLUME --reader SECOND-READER
           --example FORMAT-EXAMPLE [--make-golden] [CASE...]

Each case gets an empty folder.  --make-golden writes new golden containers
(and their listings) for a new format version, and does nothing else.
"""

import argparse
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")
FORMAT_MD = os.path.join(HERE, "..", "..", "fs", "FORMAT.md")
BLOCK = 4096
PASSWORD = "tusk"
COST = ["--kdf-time", "0.01", "--kdf-memory", "8M", "--no-recovery-key",
        "--password-file", "pw"]
# Name: scheme, sector, integrity, how it ended.
GOLDENS = {
    "v0-xts": ("aes-256-xts", "4096", "on", "clean"),
    "v0-elephant-crash": ("aes-128-cbc-elephant", "512", "off", "crash"),
}

CASES = []
programs = None


class Failure(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


def run(*args, status=0):
    """What the program says on stdout; its status must be as given."""
    done = subprocess.run(args, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, check=False)
    if done.returncode != status:
        raise Failure(f"{' '.join(args)}: status {done.returncode}, not "
                      f"{status}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def volume(command, *args, status=0):
    return run(programs.volume, command, "c.tusk", "pw", *args, status=status)


def second_reader(status=0):
    return run(programs.reader, "c.tusk", "pw", status=status)


def same(got, want, what):
    if got == want:
        return
    for number, (a, b) in enumerate(zip(got.splitlines(), want.splitlines())):
        if a != b:
            raise Failure(f"{what}: line {number + 1}:\n  {a}\n  {b}")
    raise Failure(f"{what}: one is longer")


def read_by_both():
    """The listing of c.tusk, on which library and second reader agree."""
    volume("check")
    listing = volume("list")
    same(second_reader(), listing, "second reader and library differ")
    return listing


def flip(offset, bit=0):
    with open("c.tusk", "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 1 << bit]))


def create(scheme, sector, integrity):
    run(programs.tusk, "create", *COST, "--scheme", scheme, "--sector-size",
        sector, "--integrity", integrity, "c.tusk")


def written_by_the_library(scheme, sector, integrity):
    create(scheme, sector, integrity)
    read_by_both()
    volume("write")
    listing = read_by_both()
    if len(listing.splitlines()) < 500:
        raise Failure("the writer wrote little")
    volume("touch")
    read_by_both()


@case
def default_scheme():
    written_by_the_library("aes-256-xts", "4096", "on")


@case
def elephant_512():
    written_by_the_library("aes-128-cbc-elephant", "512", "on")


@case
def xts_128_512_without_tags():
    written_by_the_library("aes-128-xts", "512", "off")


@case
def cbc():
    written_by_the_library("aes-256-cbc", "4096", "off")


@case
def none():
    written_by_the_library("none", "4096", "off")


@case
def none_with_tags():
    written_by_the_library("none", "512", "on")


@case
def either_header_is_enough():
    create("aes-256-xts", "4096", "on")
    volume("write")
    listing = volume("list")
    for offset in (0, 100000, 16 * 1048576, 16 * 1048576 + 100000):
        flip(offset)
        same(second_reader(), listing, "one header damaged")
        flip(offset)
    flip(100000)
    flip(16 * 1048576 + 100000)
    second_reader(status=1)


@case
def damage_is_noticed():
    """The reader is no judge if it would read anything."""
    create("aes-256-xts", "4096", "on")
    volume("write")
    with open("c.tusk", "rb") as f:
        image = f.read()
    used = [b for b in range(256, len(image) // BLOCK)
            if not 4096 <= b < 4352 and
            image[b * BLOCK:(b + 1) * BLOCK].strip(b"\0")]
    noticed = 0
    for block in used[::len(used) // 40]:
        flip(block * BLOCK + 1234, 3)
        done = subprocess.run([programs.reader, "c.tusk", "pw"],
                              capture_output=True, timeout=120, check=False)
        noticed += done.returncode == 1
        flip(block * BLOCK + 1234, 3)
    # Not all that was written is still in use.
    if noticed < 20:
        raise Failure(f"only {noticed} changed blocks were noticed")


@case
def wrong_password():
    create("none", "4096", "off")
    with open("pw", "w") as f:
        f.write("not it\n")
    second_reader(status=1)


def dumps_of_the_page():
    """The hex dumps of FORMAT.md's first example: title to bytes."""
    with open(FORMAT_MD) as f:
        page = f.read()
    dumps, title = {}, None
    for line in page.splitlines():
        if re.fullmatch(r"    [0-9a-f]{6} ( [0-9a-f]{2})+", line):
            offset, digits = line.split(None, 1)
            dumps.setdefault(title, []).append(
                (int(offset, 16), bytes.fromhex(digits)))
        else:
            title = line
    return dumps


@case
def examples_are_a_container():
    """The page's two examples together: header of one, trees of the other."""
    run(programs.example, "--write", "c.tusk")
    dumps = dumps_of_the_page()
    with open("c.tusk", "r+b") as f:
        for title in ("Fixed part of the header", "Key table, row 0",
                      "Key slot 0"):
            for offset, digits in dumps[title]:
                for copy in (0, 16 * 1048576):
                    f.seek(copy + offset)
                    f.write(digits)
    listing = read_by_both()
    lines = listing.splitlines()
    if len(lines) != 2 or not lines[1].startswith("./hello file 0644 1024 1 "):
        raise Failure(f"not what the page says: {listing}")


def unpack(name):
    with lzma.open(os.path.join(GOLDEN, name + ".xz")) as packed, \
            open("c.tusk", "wb") as f:
        image = packed.read()
        for at in range(0, len(image), BLOCK):
            piece = image[at:at + BLOCK]
            if piece.strip(b"\0"):
                f.seek(at)
                f.write(piece)
        f.truncate(len(image))


def golden(name):
    unpack(name)
    with open(os.path.join(GOLDEN, name + ".list")) as f:
        expected = f.read()
    same(read_by_both(), expected, "golden container and its listing")
    # And it can go on being used.
    volume("touch")
    more = read_by_both().splitlines()
    rest = [line for line in more[1:] if not line.startswith("./touched ")]
    if rest != expected.splitlines()[1:] or len(more) != len(rest) + 2:
        raise Failure("something else than `touched` has changed")


for golden_name in GOLDENS:
    def golden_case(name=golden_name):
        golden(name)
    golden_case.__name__ = "golden_" + golden_name
    case(golden_case)


def make_golden():
    os.makedirs(GOLDEN, exist_ok=True)
    for name, shape in GOLDENS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with open("pw", "w") as f:
                f.write(PASSWORD + "\n")
            volume("golden", *shape)
            with open("c.tusk", "rb") as f:
                image = f.read()
            listing = read_by_both()
            # The second copy of the header is 16 MiB behind the first.
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME,
                        "dict_size": 64 << 20}]
            packed = lzma.compress(image, filters=filters)
            with open(os.path.join(GOLDEN, name + ".xz"), "wb") as f:
                f.write(packed)
            with open(os.path.join(GOLDEN, name + ".list"), "w") as f:
                f.write(listing)
            print(f"{name}: {len(packed)} bytes")
            os.chdir(HERE)


def run_case(function):
    folder = tempfile.mkdtemp(prefix="tusk-compat-")
    os.chdir(folder)
    with open("pw", "w") as f:
        f.write(PASSWORD + "\n")
    try:
        function()
        return True
    except (Failure, OSError, subprocess.TimeoutExpired) as error:
        print(f"{function.__name__}: {error}")
        return False
    finally:
        os.chdir(HERE)
        shutil.rmtree(folder)


def main():
    global programs
    parser = argparse.ArgumentParser()
    for name in ("tusk", "volume", "reader", "example"):
        parser.add_argument("--" + name, required=True, type=os.path.abspath)
    parser.add_argument("--make-golden", action="store_true")
    parser.add_argument("cases", nargs="*")
    programs = parser.parse_args()
    if programs.make_golden:
        make_golden()
        return 0
    passed = failed = 0
    for function in CASES:
        if programs.cases and function.__name__ not in programs.cases:
            continue
        if run_case(function):
            passed += 1
        else:
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
