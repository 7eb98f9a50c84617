# SPDX-License-Identifier: GPL-3.0-or-later
"""Real programs that a home folder has to serve."""

import os
import random
import shutil
import subprocess
import sys

from kit import *

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
       "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
       "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org"}


def git(where, *args, **kwargs):
    return run("git", "-c", "protocol.file.allow=always", "-C", where, *args,
               env=GIT, **kwargs)


def make_repository(top, files=600):
    os.mkdir(top)
    git(top, "init", "-q")
    rng = random.Random(11)
    for i in range(files):
        folder = f"{top}/d{i % 23}/e{i % 7}"
        os.makedirs(folder, exist_ok=True)
        write_file(f"{folder}/f{i}.txt",
                   b"".join(b"line %d\n" % rng.randrange(1000)
                            for _ in range(rng.randrange(200))))
    os.symlink("d0", top + "/link")
    os.chmod(top + "/d0/e0/f0.txt", 0o755)
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "first")
    for i in range(0, files, 9):
        with open(f"{top}/d{i % 23}/e{i % 7}/f{i}.txt", "ab") as f:
            f.write(b"more\n")
    git(top, "commit", "-q", "-a", "-m", "second")


@test(every_scheme=True, folder=True)
def p22_git_works_in_the_mount(t):
    need("git")
    t.setup()
    repo = t.dir + "/repo"
    make_repository(repo)
    equal(git(repo, "status", "--porcelain").out, "", "status when clean")
    write_file(repo + "/new", b"new")
    os.unlink(repo + "/d1/e1/f1.txt")
    equal(sorted(git(repo, "status", "--porcelain").out.splitlines()),
          [" D d1/e1/f1.txt", "?? new"], "status after changes")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "third")
    git(repo, "checkout", "-q", "-b", "other", "HEAD~1")
    git(repo, "checkout", "-q", "-")
    git(repo, "gc", "-q", "--aggressive", "--prune=now")
    git(repo, "fsck", "--full", "--strict")
    head = git(repo, "rev-parse", "HEAD").out
    t.remount()
    git(repo, "fsck", "--full", "--strict")
    equal(git(repo, "rev-parse", "HEAD").out, head, "HEAD after the remount")
    equal(git(repo, "status", "--porcelain").out, "", "status after it")


@test(folder=True, threads=True)
def p22_git_clones_into_and_out_of_the_mount(t):
    need("git")
    t.setup()
    origin = t.path("origin")
    make_repository(origin, files=700)
    head = git(origin, "rev-parse", "HEAD").out
    git("/", "clone", "-q", "--no-local", origin, t.dir + "/a")
    git("/", "clone", "-q", t.dir + "/a", t.dir + "/b")      # hard links
    git("/", "clone", "-q", "--no-local", t.dir + "/b", t.path("back"))
    for clone in (t.dir + "/a", t.dir + "/b", t.path("back")):
        git(clone, "fsck", "--full")
        equal(git(clone, "rev-parse", "HEAD").out, head, f"HEAD of {clone}")
        equal(git(clone, "status", "--porcelain").out, "", "status")
    files = [p for p in tree(t.dir + "/a", times=False)
             if not p.startswith(b".git")]
    check(len(files) > 700, f"only {len(files)} files")
    t.remount()
    git(t.dir + "/b", "fsck", "--full")


SQLITE_WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=300, isolation_level=None)
me, rows = int(sys.argv[2]), int(sys.argv[3])
for i in range(rows):
    db.execute("begin immediate")
    db.execute("insert into t values (?, ?, randomblob(300))", (me, i))
    db.execute("update total set n = n + 1")
    db.execute("commit")
"""


def sqlite_with_four_writers(t, mode):
    import sqlite3
    t.setup()
    path = t.dir + "/db"
    db = sqlite3.connect(path)
    got = db.execute(f"pragma journal_mode={mode}").fetchone()[0]
    equal(got, mode, "journal mode")
    db.execute("create table t (w int, i int, b blob)")
    db.execute("create index x on t (b)")
    db.execute("create table total (n int)")
    db.execute("insert into total values (0)")
    db.commit()
    db.close()
    rows = 2500 if t.long else 120
    writers = [subprocess.Popen([sys.executable, "-c", SQLITE_WRITER, path,
                                 str(i), str(rows)],
                                stderr=subprocess.PIPE) for i in range(4)]
    for w in writers:
        _, err = w.communicate()
        equal(w.returncode, 0, f"writer: {err.decode()[-300:]}")

    def sound(what):
        db = sqlite3.connect(path)
        equal(db.execute("pragma integrity_check").fetchall(), [("ok",)],
              what + ": integrity_check")
        equal(db.execute("select count(*), count(distinct w * 100000 + i) "
                         "from t").fetchone(), (4 * rows, 4 * rows),
              what + ": rows")
        equal(db.execute("select n from total").fetchone(), (4 * rows,),
              what + ": total")
        db.execute("delete from t where i % 2")
        db.rollback()
        db.close()

    sound("at once")
    t.remount()
    sound("after the remount")
    if shutil.which("sqlite3"):
        equal(run("sqlite3", path, "pragma integrity_check").out, "ok\n",
              "sqlite3")


@test(folder=True, threads=True, timeout=600)
def p22_sqlite_in_wal_mode_with_four_writers(t):
    sqlite_with_four_writers(t, "wal")


@test(folder=True, threads=True, timeout=600)
def p22_sqlite_with_a_rollback_journal_and_four_writers(t):
    sqlite_with_four_writers(t, "delete")


@test(every_scheme=True)
def p22_sqlite_survives_kill_9(t):
    """What was committed is there, whichever journal."""
    import sqlite3
    t.setup()
    open_ones = []
    for mode in ("delete", "wal"):
        db = sqlite3.connect(f"{t.dir}/{mode}", isolation_level=None)
        db.execute(f"pragma journal_mode={mode}")
        db.execute("pragma synchronous=full")
        db.execute("create table t (i int, b blob)")
        for i in range(60):
            db.execute("insert into t values (?, randomblob(2000))", (i,))
        db.execute("begin")
        db.execute("insert into t values (1000, randomblob(90000))")
        open_ones.append(db)
    t.kill()
    for db in open_ones:
        try:
            db.close()
        except sqlite3.Error:
            pass
    t.tusk("umount", t.point)
    t.mount()
    for mode in ("delete", "wal"):
        db = sqlite3.connect(f"{t.dir}/{mode}")
        equal(db.execute("pragma integrity_check").fetchall(), [("ok",)],
              mode + ": integrity_check")
        equal(db.execute("select count(*), max(i) from t").fetchone(),
              (60, 59), mode + ": rows")
        db.close()


@test(every_scheme=True, folder=True)
def p12_rsync_aHX_there_and_back(t):
    need("rsync")
    t.setup()
    source, back = t.ref + "/tree", t.path("back")
    make_tree(source, files=200)
    run("rsync", "-aHX", source + "/", t.dir + "/tree/")
    t.remount()
    run("rsync", "-aHX", "--sparse", t.dir + "/tree/", back + "/")
    same_tree(tree(t.dir + "/tree"), tree(source), "in the mount")
    same_tree(tree(back), tree(source), "brought back")
    out = run("rsync", "-aHXi", "--checksum", "--dry-run", "--delete",
              source + "/", t.dir + "/tree/").out
    equal(out, "", "what rsync would still change")
    write_file(source + "/file-3", b"changed")
    os.unlink(source + "/link")
    run("rsync", "-aHX", "--delete", source + "/", t.dir + "/tree/")
    run("rsync", "-aHX", "--inplace", "--append-verify", source + "/",
        t.dir + "/tree/")
    same_tree(tree(t.dir + "/tree"), tree(source), "after an update")


@test(folder=True)
def cp_a_keeps_everything(t):
    t.setup()
    source = t.ref + "/tree"
    make_tree(source, files=150)
    run("cp", "-a", source, t.dir + "/in")
    run("cp", "-a", t.dir + "/in", t.dir + "/inside")
    t.remount()
    run("cp", "-a", t.dir + "/inside", t.path("back"))
    for where in (t.dir + "/in", t.dir + "/inside", t.path("back")):
        same_tree(tree(where), tree(source), where)
    run("diff", "-r", "--no-dereference", "-x", "fifo", source, t.dir + "/in")


@test(folder=True)
def p06_tar_with_dangling_links(t):
    need("tar", "xz")
    t.setup()
    source = t.ref + "/tree"
    make_tree(source, files=100)
    flags = ["--xattrs", "--xattrs-include=user.*", "--sparse", "-p"]
    run("tar", *flags, "-cJf", t.path("a.tar.xz"), "-C", t.ref, "tree")
    done = run("tar", *flags, "-xJf", t.path("a.tar.xz"), "-C", t.dir)
    equal(done.err, "", "what tar said")
    t.remount()
    same_tree(tree(t.dir + "/tree"), tree(source), "unpacked")
    done = run("tar", *flags, "-cf", t.dir + "/b.tar", "-C", t.dir, "tree")
    equal(done.err, "", "what tar said when packing")
    os.mkdir(t.path("again"))
    run("tar", *flags, "-xf", t.dir + "/b.tar", "-C", t.path("again"))
    same_tree(tree(t.path("again") + "/tree"), tree(source), "packed again")


PROGRAM = r"""
#include <stdio.h>
#include "part.h"
int main(int argc, char **argv)
{
	printf("%d %s\n", part(argc), argv[0]);
	return 42;
}
"""
MAKEFILE = """
CFLAGS = -O1 -g
prog: main.o part.o
\t$(CC) -o $@ main.o part.o
main.o part.o: part.h
lib.a: part.o
\tar rcs $@ part.o
clean:
\trm -f *.o prog lib.a
"""


@test(folder=True)
def a_compiler_builds_and_the_program_runs(t):
    need("cc", "make", "ar")
    t.setup()
    write_file(t.dir + "/main.c", PROGRAM.encode())
    write_file(t.dir + "/part.h", b"int part(int);\n")
    write_file(t.dir + "/part.c",
               b'#include "part.h"\nint part(int n)\n{\nreturn n + 6;\n}\n')
    write_file(t.dir + "/Makefile", MAKEFILE.encode())
    run("make", "-j2", "prog", "lib.a", cwd=t.dir)
    check("is up to date" in run("make", "prog", cwd=t.dir).out,
          "make builds again what it has just built")
    t.remount()
    check("is up to date" in run("make", "prog", cwd=t.dir).out,
          "make builds again after a remount: time stamps moved")
    equal(run(t.dir + "/prog", expect=42).out, f"7 {t.dir}/prog\n", "output")
    run("make", "clean", cwd=t.dir)
    check(not os.path.exists(t.dir + "/main.o"), "make clean left files")


@test(folder=True)
def archives_and_scripts(t):
    """A shell script, zip by Python, gzip in place, sort with its temporary
    files, patch."""
    need("gzip", "sort", "sh")
    import zipfile
    t.setup()
    write_file(t.dir + "/script", b"#!/bin/sh\necho ran $1 > out\n")
    os.chmod(t.dir + "/script", 0o755)
    run(t.dir + "/script", "well", cwd=t.dir)
    equal(read_file(t.dir + "/out"), b"ran well\n", "the script's output")
    rng = random.Random(5)
    lines = [b"%08d\n" % rng.randrange(10**8) for _ in range(100_000)]
    write_file(t.dir + "/lines", b"".join(lines))
    run("sort", "-S", "100K", "-T", t.dir, "-o", "lines", "lines", cwd=t.dir)
    equal(read_file(t.dir + "/lines"), b"".join(sorted(lines)), "sorted")
    run("gzip", "-k", "lines", cwd=t.dir)
    with zipfile.ZipFile(t.dir + "/a.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write(t.dir + "/lines", "lines")
    t.remount()
    run("gzip", "-dc", t.dir + "/lines.gz")
    with zipfile.ZipFile(t.dir + "/a.zip") as z:
        equal(z.testzip(), None, "first bad file")
        check(z.read("lines") == b"".join(sorted(lines)), "unpacked")


@test(every_scheme=True, folder=True, threads=True, timeout=600)
def fio_verifies_what_it_wrote(t):
    need("fio")
    t.setup()
    for engine, extra in [("psync", []), ("mmap", []),
                          ("psync", ["--direct=1"])]:
        run("fio", "--name=v", f"--ioengine={engine}", "--rw=randrw",
            "--bsrange=512-128k", "--bs_unaligned=" +
            ("0" if extra else "1"), "--blockalign=512", "--size=12m",
            "--numjobs=2", "--thread=0", "--verify=crc32c",
            "--verify_fatal=1", "--verify_backlog=200", "--randseed=9",
            "--output-format=terse", "--verify_state_save=0",
            "--filename_format=$jobnum." + engine +
            str(len(extra)), "--directory=" + t.dir, *extra,
            *(["--bsrange=4k-128k", "--blockalign=4k"] if extra else []))
        t.remount()
