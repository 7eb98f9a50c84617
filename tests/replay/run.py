#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""trace info, replay and compare, from their command lines.

    tests/replay/run.py --tusk PATH [--only PART-OF-A-NAME]

Prints `ok NAME`, `not ok NAME: why` or `skip NAME: why` for each case, and in
the end `N passed, M failed, K skipped`.  Names begin with the case of the
collection they come from (T03, T05, T09) where there is one.

TUSK_TRACE_SAMPLES names a folder with more samples and an EXPECTED.tsv of
theirs; rows of formats that this tusk lacks are left out.
"""

import argparse
import csv
import gzip
import json
import lzma
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "data", "traces")
DONE, FAILED, USAGE, NO_SPACE, INTERRUPTED = 0, 1, 2, 9, 130
FORMATS = {"fio", "fiov1", "msr", "blkparse(Q)"}
GUARD = 300             # seconds after which a run counts as hanging

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


def trace(name):
    return os.path.join(DATA, name)


def write(name, data):
    with open(name, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return name


def read(name):
    with open(name, "rb") as f:
        return f.read()


class Kit:
    def __init__(self, binary):
        self.binary = binary

    def run(self, *args, expect=DONE, **more):
        done = subprocess.run(
            [self.binary, *args], capture_output=True, timeout=GUARD,
            **{"stdin": subprocess.DEVNULL, **more} if "input" not in more
            else more)
        check(done.returncode == expect,
              f"tusk {' '.join(args)}: status {done.returncode}, not "
              f"{expect}: {done.stderr.decode()[-600:]}")
        return done

    def info(self, *files, **more):
        """The row of --tsv, as a dict."""
        out = self.run("trace", "info", "--tsv", *files, **more).stdout
        rows = list(csv.DictReader(out.decode().splitlines(),
                                   delimiter="\t"))
        equal(len(rows), 1, "lines of --tsv")
        return rows[0]

    def report(self, *args, **more):
        done = self.run("replay", "--json", "-", *args, **more)
        return json.loads(done.stdout)


def expected(folder):
    with open(os.path.join(folder, "EXPECTED.tsv"), encoding="utf-8") as f:
        lines = f.read().splitlines()
    return lines[0], [line for line in lines[1:]
                      if line.split("\t")[0] in FORMATS]


def same_as_expected(t, folder):
    head, rows = expected(folder)
    check(rows, "no rows")
    for row in rows:
        files = [os.path.join(folder, name)
                 for name in row.split("\t")[1].split("+")]
        out = t.run("trace", "info", "--tsv", *files).stdout.decode()
        equal(out, f"{head}\n{row}\n", row.split("\t")[1])


# --- trace info ------------------------------------------------------------

@case
def totals_are_those_expected(t):
    same_as_expected(t, DATA)


@case
def totals_of_more_samples(t):
    folder = os.environ.get("TUSK_TRACE_SAMPLES")
    if not folder:
        raise Skip("TUSK_TRACE_SAMPLES is not set")
    same_as_expected(t, folder)


@case
def t03_packed_and_piped_is_the_same(t):
    plain = gzip.decompress(read(trace("msr_layout.csv.gz")))
    want = t.info(write("plain", plain))
    packed = {"gz": gzip.compress(plain), "xz": lzma.compress(plain),
              "two": gzip.compress(plain[:4000]) + gzip.compress(plain[4000:])}
    if shutil.which("zstd"):
        packed["zst"] = subprocess.run(["zstd", "-qc"], input=plain, check=True,
                                       capture_output=True).stdout
    for name, data in packed.items():
        equal({**t.info(write(name, data)), "files": ""},
              {**want, "files": ""}, name)
        equal({**t.info("-", input=data), "files": ""},
              {**want, "files": ""}, f"{name} from stdin")


@case
def t03_languages_and_line_ends_change_nothing(t):
    for name in ("fio_v3_mixed.iolog", "loopfio.blkparse.txt",
                 "msr_layout_ugly_small.csv"):
        want = t.info(trace(name))
        crlf = write("crlf", read(trace(name)).replace(b"\n", b"\r\n"))
        equal({**t.info(crlf), "files": ""}, {**want, "files": ""}, name)
        got = t.info(trace(name),
                     env={**os.environ, "LC_ALL": "de_DE.UTF-8"})
        equal(got, want, name)


@case
def packed_traces_that_end_early_are_errors(t):
    data = read(trace("msr_layout.csv.gz"))
    plain = gzip.decompress(data)
    for name, whole in (("gz", data), ("xz", lzma.compress(plain))):
        done = t.run("trace", "info", "--tsv",
                     write("cut." + name, whole[:len(whole) // 2]),
                     expect=FAILED)
        equal(done.stdout, b"", "totals of a part")
        check(b"truncated" in done.stderr, done.stderr)
        os.mkdir("dir-" + name)
        t.run("replay", "cut." + name, "dir-" + name, expect=FAILED)
        equal(os.listdir("dir-" + name), [], "left behind")


@case
def bad_lines_are_shown_and_strict_ends(t):
    name = trace("msr_layout_ugly_small.csv")
    done = t.run("trace", "info", name)
    check(b"line 18 " in done.stderr and b"line 200 " in done.stderr,
          done.stderr)
    done = t.run("trace", "info", "--strict", name, expect=FAILED)
    equal(done.stdout, b"", "output after --strict")
    check(b"line 18 " in done.stderr, done.stderr)
    write("many", "fio version 3 iolog\n" + "x\n" * 12)
    done = t.run("trace", "info", "many")
    equal(len(done.stderr.splitlines()), 6, "messages")
    check(b"7 more" in done.stderr, done.stderr)


@case
def t05_files_merge_to_the_global_order(t):
    lines = [f"  8,{16 * (i % 2)} 0 {i} 0.{i:09d} 7  Q  W {8 * i} + 8 [a]\n"
             for i in range(1, 100)]
    for part in range(3):
        write(f"part{part}", "".join(lines[part::3]))
    write("all", "".join(lines))
    want, got = t.info("all"), t.info("part0", "part1", "part2")
    equal(got["files"], "part0+part1+part2", "files")
    equal({**got, "files": ""}, {**want, "files": ""}, "merged")
    equal(got["out_of_order"], "0", "order")
    equal(got["targets"], "2", "targets")
    t.run("trace", "info", "all", trace("fio_v3_mixed.iolog"), expect=FAILED)


@case
def json_has_the_same_numbers(t):
    row = t.info(trace("loopfio.blkparse.txt"))
    out = json.loads(t.run("trace", "info", "--json",
                           trace("loopfio.blkparse.txt")).stdout)
    equal((out["format"], out["records"], out["bytes"]["write"],
           out["span_ns"], out["targets"]),
          (row["format"], int(row["records"]), int(row["bytes_written"]),
           int(row["span_ns"]), ["7,1"]), "numbers")


@case
def hostile_bytes_never_crash(t):
    rng = random.Random(7)
    seeds = [read(trace(name))[:3000] for name in os.listdir(DATA)]
    os.mkdir("dir")
    for i in range(60):
        data = bytearray(rng.choice(seeds) if i % 3 else rng.randbytes(2000))
        for _ in range(rng.randrange(20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        write("t", bytes(data))
        for args in (["trace", "info", "t"],
                     ["trace", "info", "--format", "blkparse", "t"],
                     ["replay", "--fit", "wrap", "--size", "1M", "t", "dir"]):
            done = subprocess.run([t.binary, *args], capture_output=True,
                                  timeout=GUARD)
            check(done.returncode in (DONE, FAILED, NO_SPACE),
                  f"{args}: status {done.returncode}, {done.stderr[-500:]!r}")
            check(b"Sanitizer" not in done.stderr, done.stderr)
    equal(os.listdir("dir"), [], "left behind")


# --- replay ----------------------------------------------------------------

@case
def replays_what_was_recorded_and_leaves_nothing(t):
    os.mkdir("dir")
    write("dir/mine", b"precious")
    for name in ("fio_v3_mixed.iolog", "loopfio.blkparse.txt",
                 "fio_v2_wait_sync.iolog"):
        row = t.info(trace(name))
        for more in ([], ["--depth", "8"]):
            out = t.report(*more, trace(name), "dir")
            ops = out["operations"]
            equal([ops[k]["count"] for k in
                   ("read", "write", "trim", "flush")],
                  [int(row[k]) for k in
                   ("reads", "writes", "trims", "flushes")], name)
            equal(ops["read"]["bytes"], int(row["bytes_read"]), name)
            equal(ops["write"]["bytes"], int(row["bytes_written"]), name)
            equal((out["errors"], out["interrupted"]), (0, False), name)
            equal(ops["read"]["service"]["count"], ops["read"]["count"],
                  "measured")
    equal(os.listdir("dir"), ["mine"], "left behind")
    equal(read("dir/mine"), b"precious", "another's file")


@case
def t05_one_file_for_each_target(t):
    os.mkdir("dir")
    t.run("replay", "--keep", trace("fio_v3_mixed.iolog"), "dir")
    made, = os.listdir("dir")
    check(made.startswith("tusk-replay-"), made)
    files = sorted(os.listdir(os.path.join("dir", made)))
    equal(files, ["0000", "0001", "0002"], "files")
    sizes = [os.path.getsize(os.path.join("dir", made, f)) for f in files]
    equal(max(sizes), -(-2796032 // 4096) * 4096, "the largest")


@case
def the_same_trace_leaves_the_same_files(t):
    found = []
    for i, more in enumerate(([], ["--depth", "16"], ["--speed", "50"])):
        os.mkdir(f"dir{i}")
        t.run("replay", "--keep", *more, trace("fio_v3_mixed.iolog"),
              f"dir{i}")
        made, = os.listdir(f"dir{i}")
        found.append([read(os.path.join(f"dir{i}", made, f"000{k}"))
                      for k in range(3)])
    check(found[0] == found[1] == found[2], "different files")


@case
def verified_replays_read_what_was_written(t):
    os.mkdir("dir")
    for more in (["--depth", "8"], ["--fit", "compact", "--direct"]):
        try:
            out = t.report("--verify", *more, trace("fio_v3_mixed.iolog"),
                           "dir")
        except Failure as e:
            if "no direct I/O" in str(e):
                continue
            raise
        equal((out["wrong_reads"], out["checked_in_the_end"]), (0, True),
              f"{more}")
    out = t.report("--verify", trace("loopfio.blkparse.txt"), "dir")
    equal((out["wrong_reads"], out["checked_in_the_end"]), (0, True), "trims")
    t.run("replay", "--verify", "--no-fill", trace("fio_v3_mixed.iolog"),
          "dir", expect=USAGE)


@case
def t09_every_policy_says_what_it_did(t):
    write("far", "fio version 3 iolog\n" + "".join(
        f"{us} /a {op} {offset} {length}\n" for us, op, offset, length in (
            (5, "write", 1 << 40, 511), (3, "read", 0, 0),
            (9, "read", 12345, 1), (9, "write", (1 << 30) - 5, 513),
            (0, "read", 1 << 20, (1 << 20) + 7))))
    os.mkdir("dir")
    want = {
        # policy: (reads, writes, skipped, split)
        "grow": (2, 2, 0, 0), "compact": (2, 2, 0, 0), "scale": (2, 2, 0, 0),
        "wrap": (2, 2, 0, 1), "skip": (2, 0, 2, 0),
    }
    for policy, numbers in want.items():
        out = t.report("--fit", policy, "--speed", "1", "far", "dir")
        got = (out["operations"]["read"]["count"],
               out["operations"]["write"]["count"],
               out["remarks"]["skipped"], out["remarks"]["split"])
        equal(got, numbers, policy)
        equal((out["remarks"]["zero_length"], out["errors"]), (1, 0), policy)
        # Five records are within the window that puts them in order.
        equal(out["remarks"]["out_of_order"], 0, policy)
    done = t.run("replay", "--fit", "strict", "far", "dir", expect=FAILED)
    check(b"1099511628287 bytes" in done.stderr, done.stderr)
    equal(t.info("far")["out_of_order"], "2", "info")


@case
def t03_recorded_time_is_kept_from_below(t):
    """Never early; how late is the machine's affair and in the report."""
    write("v3", "fio version 3 iolog\n0 /a read 0 512\n1000000 /a read 0 512\n")
    write("blk", "  8,0 0 1 0.000000000 7  Q  R 0 + 1 [a]\n"
                 "  8,0 0 2 1.000000000 7  Q  R 0 + 1 [a]\n")
    write("msr", "128166372003061629,h,0,Read,0,512,1\n"
                 "128166372013061629,h,0,Read,0,512,1\n")
    write("v2", "fio version 2 iolog\n/a read 0 512\n/a wait 1000 0\n"
                "/a read 0 512\n")
    os.mkdir("dir")
    for name in ("v3", "blk", "msr", "v2"):
        out = t.report("--speed", "2", name, "dir")
        equal(out["lateness"]["last_due_ns"], 500_000_000, name)
        check(out["elapsed_ns"] >= 500_000_000, f"{name}: {out}")
        equal(out["operations"]["read"]["response"]["count"], 2, name)
    out = t.report("v3", "dir")
    check("response" not in out["operations"]["read"], "closed loop")
    out = t.report("--speed", "1", "--max-idle", "0.1", "v3", "dir")
    equal(out["lateness"]["last_due_ns"], 100_000_000, "max idle")
    equal(out["remarks"]["gaps_cut"], 1, "max idle")


@case
def t03_interrupted_replays_report(t):
    os.mkdir("dir")
    for sig in (signal.SIGINT, signal.SIGTERM):
        p = subprocess.Popen(
            [t.binary, "replay", "--speed", "1", "--json", "out",
             trace("msr_layout.csv.gz"), "dir"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            end = time.monotonic() + GUARD
            # Two seconds of the trace, once the files are there.
            while not os.listdir("dir") and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(2)
            p.send_signal(sig)
            out, err = p.communicate(timeout=GUARD)
        finally:
            p.kill()
        equal(p.returncode, INTERRUPTED, f"status, {err[-300:]!r}")
        check(b"nterrupted" in out + err, out + err)
        if out:
            check(json.loads(read("out"))["interrupted"], "JSON")
        equal(os.listdir("dir"), [], "left behind")


@case
def runtime_loops_ramp_and_rate(t):
    os.mkdir("dir")
    small = trace("fio_v2_wait_sync.iolog")
    out = t.report("--loops", "10", small, "dir")
    equal((out["operations"]["flush"]["count"], out["mode"]["loops"]),
          (20, 10), "loops")
    out = t.report("--loops", "1000000", "--runtime", "0.3", small, "dir")
    check(out["operations"]["read"]["count"] > 0, "nothing done")
    out = t.report("--loops", "3", "--ramp", "1000", small, "dir")
    equal(out["operations"]["read"]["count"], 0, "ramp")
    equal(out["remarks"]["ramp"], 21, "ramp")
    out = t.report("--rate", "100", "--loops", "3", small, "dir")
    equal(out["lateness"]["last_due_ns"], 200_000_000, "rate")
    equal(out["lateness"]["count"], 21, "rate")


@case
def a_pipe_is_read_more_than_once(t):
    os.mkdir("dir")
    out = t.report("--loops", "2", "--fit", "wrap", "-", "dir",
                   input=read(trace("msr_layout_ugly_small.csv")))
    equal(out["operations"]["write"]["count"], 2 * 191, "writes")
    equal(out["remarks"]["bad_lines"], 5, "bad lines")


@case
def what_can_not_be_is_refused_before_any_work(t):
    os.mkdir("dir")
    write("big", "fio version 3 iolog\n" + "".join(
        f"1 /a read {i << 40} {1 << 40}\n" for i in range(3)))
    for args, status, says in (
            (["--speed", "1", trace("fio_v1_handmade.iolog"), "dir"], USAGE,
             b"no times"),
            (["--speed", "0", "x", "dir"], USAGE, b"--speed"),
            (["--speed", "1,5", "x", "dir"], USAGE, b"--speed"),
            (["--fit", "x", "x", "dir"], USAGE, b"grow"),
            (["--depth", "0", "x", "dir"], USAGE, b"--depth"),
            (["--size", "4K", "x", "dir"], USAGE, b"1M"),
            (["--max-idle", "1", trace("fio_v3_mixed.iolog"), "dir"], USAGE,
             b"--max-idle"),
            ([trace("fio_v3_mixed.iolog"), "big"], USAGE, b"folder"),
            ([trace("fio_v3_mixed.iolog"), "none"], FAILED, b"none"),
            (["none", "dir"], FAILED, b"none"),
            (["big", "dir"], NO_SPACE, b"free"),
            (["--format", "msr", "big", "dir"], FAILED, b"no record")):
        done = t.run("replay", *args, expect=status)
        check(says in done.stderr, f"{args}: {done.stderr}")
        equal(os.listdir("dir"), [], "left behind")


# --- compare ---------------------------------------------------------------

def need_fuse():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as e:
        raise Skip(f"/dev/fuse: {e.strerror}") from None
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        raise Skip("fusermount3 is not installed")


def mounts(below):
    """Mounts in that folder; others' are not ours to count."""
    return read("/proc/self/mountinfo").count(
        b" " + os.fsencode(os.path.realpath(below)) + b"/")


@case
def compare_says_what_schemes_cost(t):
    need_fuse()
    os.mkdir("dir")
    done = t.run("compare", "--rounds", "1", "--schemes",
                 "aes-128-xts,none,aes-256-xts+integrity", "--dir", "dir",
                 "--json", "j", "--csv", "c", trace("fio_v2_wait_sync.iolog"))
    for line in done.stdout.decode().splitlines():
        check(len(line) < 80, line)
    out = json.loads(read("j"))
    names = ["host folder", "none", "aes-128-xts", "aes-256-xts+integrity"]
    equal([row["name"] for row in out["rows"]], names, "rows")
    equal(out["rounds"], 1, "rounds")
    for key in ("cpu", "cpu_features", "kernel", "libgcrypt"):
        check(out["machine"][key], key)
    for row in out["rows"]:
        equal(len(row["rounds"]), 1, row["name"])
        equal(row["service"]["count"], 4, row["name"])
        check(row["rounds"][0]["average_bytes_per_second"] > 0, row["name"])
    base = out["rows"][1]["rounds"][0]["iops"]
    x = out["rows"][2]["rounds"][0]["iops"]
    hit = out["rows"][2]["hit_against_none"]["iops"]["milli_percent"]
    equal(hit, int((base - x) * 100000 / base), "hit")
    check("hit_against_none" not in out["rows"][1], "the base itself")
    with open("c", newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    equal([row["name"] for row in rows], names, "CSV")
    equal(int(rows[2]["iops"]), x, "CSV")
    equal(os.listdir("dir"), [], "left behind")
    equal(mounts("."), 0, "mounts")


@case
def compare_rounds_and_folders(t):
    need_fuse()
    os.mkdir("a")
    os.mkdir("b")
    done = t.run("compare", "--rounds", "2", "--schemes", "none", "--dir", "a",
                 "--dir", "b", "--json", "-", trace("fio_v1_handmade.iolog"))
    out = json.loads(done.stdout)
    equal([(row["dir"], row["name"], len(row["rounds"]))
           for row in out["rows"]],
          [(d, n, 2) for d in "ab" for n in ("host folder", "none")], "rows")
    t.run("compare", "--schemes", "rot13", trace("fio_v1_handmade.iolog"),
          expect=USAGE)


@case
def compare_draws_if_it_can(t):
    need_fuse()
    args = ["compare", "--rounds", "1", "--schemes", "none", "--plot", "p.svg",
            trace("fio_v1_handmade.iolog")]
    os.mkdir("empty")
    done = t.run(*args, expect=FAILED,
                 env={**os.environ, "PATH": os.path.abspath("empty")}) \
        if os.geteuid() == 0 else None
    if done:
        check(b"gnuplot" in done.stderr, done.stderr)
        check(b"host folder" in done.stdout, "the table is printed all the same")
    if not shutil.which("gnuplot"):
        raise Skip("gnuplot is not installed")
    t.run(*args)
    root = xml.etree.ElementTree.fromstring(read("p.svg"))
    text = "".join(root.itertext())
    check("none" in text and "host folder" in text and "MB/s" in text, text)


@case
def interrupted_comparisons_clean_up(t):
    need_fuse()
    os.mkdir("dir")
    p = subprocess.Popen(
        [t.binary, "compare", "--speed", "1", "--dir", "dir",
         trace("msr_layout.csv.gz")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + GUARD
        while not os.listdir("dir") and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1.5)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=GUARD)
    finally:
        p.kill()
    equal(p.returncode, INTERRUPTED, f"status, {err[-300:]!r}")
    equal(os.listdir("dir"), [], "left behind")
    equal(mounts("."), 0, "mounts")


# --- running ---------------------------------------------------------------

def run_one(t, function, top):
    os.mkdir(top)
    os.chdir(top)
    try:
        function(t)
        print(f"ok {function.__name__}", flush=True)
        return "passed"
    except Skip as e:
        print(f"skip {function.__name__}: {e}", flush=True)
        return "skipped"
    except Exception as e:
        print(f"not ok {function.__name__}: {e}", flush=True)
        if not isinstance(e, Failure):
            traceback.print_exc()
        return "failed"
    finally:
        os.chdir("/")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tusk", required=True)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    t = Kit(os.path.abspath(args.tusk))
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    work = tempfile.mkdtemp(prefix="tusk-replay-test-",
                            dir=os.environ.get("TUSK_TEST_DIR", "/var/tmp"))
    for function in CASES:
        if args.only in function.__name__:
            top = os.path.join(work, function.__name__)
            counts[run_one(t, function, top)] += 1
    if not mounts(work):
        shutil.rmtree(work)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    sys.exit(1 if counts["failed"] else 0)


main()
