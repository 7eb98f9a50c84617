# SPDX-License-Identifier: GPL-3.0-or-later
"""Many processes at once."""

import os
import random
import resource
import shutil
import signal
import subprocess
import time

from kit import *


@test(every_scheme=True, folder=True, threads=True, timeout=600)
def c03_parallel_copies_miss_nothing(t):
    t.setup()
    origin = t.dir + "/origin"
    os.mkdir(origin)
    files = 1000 if t.long or t.config.name == "aes-256-xts" else 150
    copies = 100 if t.long else 12
    for i in range(files):
        write_file(f"{origin}/{i}", pattern(i, i % 3000))
    os.mkdir(t.dir + "/other")
    for i in range(50):
        write_file(f"{t.dir}/other/{i}", b"")
    stop = t.path("stop")

    def rename_others():
        i = 0
        while not os.path.exists(stop):
            os.rename(f"{t.dir}/other/{i % 50}", f"{t.dir}/other/x")
            os.rename(f"{t.dir}/other/x", f"{t.dir}/other/{i % 50}")
            i += 1

    def copy_all():
        processes = [subprocess.Popen(
            ["cp", "-r", origin, f"{t.dir}/copy-{i}"],
            stderr=subprocess.PIPE) for i in range(copies)]
        try:
            for p in processes:
                _, err = p.communicate()
                equal((p.returncode, err), (0, b""), "cp")
        finally:
            write_file(stop, b"")
    in_parallel(copy_all, rename_others)
    t.remount()
    want = tree(origin, times=False)
    for i in range(copies):
        same_tree(tree(f"{t.dir}/copy-{i}", times=False), want, f"copy {i}")


@test(every_scheme=True, folder=True, threads=True, timeout=600)
def c01_truncate_loops_readers_and_writers_on_one_file(t):
    t.setup()
    path = t.dir + "/f"
    write_file(path, b"")
    rounds = 20_000 if t.long else 600

    def truncater(seed):
        def go():
            rng = random.Random(seed)
            for _ in range(rounds):
                os.truncate(path, rng.randrange(200_000))
        return go

    def writer():
        rng = random.Random(3)
        fd = os.open(path, os.O_WRONLY)
        for i in range(rounds):
            os.pwrite(fd, b"w" * rng.randrange(1, 9000),
                      rng.randrange(200_000))
            if i % 100 == 0:
                os.fsync(fd)
        os.close(fd)

    def reader():
        fd = os.open(path, os.O_RDONLY)
        for i in range(rounds):
            got = os.pread(fd, 300_000, 0)
            check(not got.strip(b"w\0"), "bytes that nobody wrote")
            if i % 50 == 0:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)

    def looker():
        for _ in range(rounds):
            between(os.stat(path).st_size, 0, 210_000, "size")
            os.statvfs(t.dir)
    in_parallel(truncater(1), truncater(2), writer, reader, reader, looker)
    t.remount()
    got = read_file(path)
    equal(len(got), os.stat(path).st_size, "length and size")
    check(not got.strip(b"w\0"), "bytes that nobody wrote, after a remount")


@test(folder=True, threads=True, timeout=600)
def c01_many_processes_each_with_its_own_tree(t):
    """Each knows what its files must hold; all share folders and disk."""
    t.setup()
    os.mkdir(t.dir + "/shared")
    steps = 5000 if t.long else 400

    def worker(me):
        def go():
            rng, model = random.Random(me), {}
            for step in range(steps):
                name = f"{t.dir}/shared/{me}-{rng.randrange(30)}"
                action = rng.randrange(8)
                if action < 3:
                    model[name] = rng.randbytes(rng.choice([9, 4097, 50_000]))
                    write_file(name, model[name], sync=rng.random() < .03)
                elif name not in model:
                    check(not os.path.exists(name), f"{name} came from where?")
                elif action == 3:
                    os.unlink(name)
                    del model[name]
                elif action == 4:
                    to = f"{t.dir}/shared/{me}-{rng.randrange(30)}"
                    os.rename(name, to)
                    model[to] = model.pop(name)
                elif action == 5:
                    at = rng.randrange(len(model[name]) + 1)
                    os.truncate(name, at)
                    model[name] = model[name][:at]
                elif action == 6:
                    drop_cached(name)
                    check(read_file(name) == model[name],
                          f"step {step} of {me}: {name} differs")
                else:
                    at = rng.randrange(len(model[name]) + 1)
                    with open(name, "r+b") as f:
                        f.seek(at)
                        f.write(b"PIECE")
                    model[name] = model[name][:at] + b"PIECE" + \
                        model[name][at + 5:]
            for name, data in model.items():
                check(read_file(name) == data, f"{name} differs at the end")
            write_file(t.path(f"count-{me}"), b"%d" % len(model))
        return go

    workers = 8
    in_parallel(*[worker(i) for i in range(workers)])
    total = sum(int(read_file(t.path(f"count-{i}"))) for i in range(workers))
    equal(len(os.listdir(t.dir + "/shared")), total, "files")
    before = tree(t.dir)
    t.remount()
    same_tree(tree(t.dir), before, "after the remount")


@test(folder=True, threads=True)
def c01_folders_moved_while_others_walk_them(t):
    t.setup()
    for a in range(4):
        for b in range(4):
            os.makedirs(f"{t.dir}/{a}/{b}")
            write_file(f"{t.dir}/{a}/{b}/f", b"x")

    def mover(seed):
        def go():
            rng = random.Random(seed)
            for _ in range(400):
                a, b, c = (rng.randrange(4) for _ in range(3))
                for pair in ((f"{t.dir}/{a}/{b}", f"{t.dir}/{c}/m{b}"),
                             (f"{t.dir}/{c}/m{b}", f"{t.dir}/{a}/{b}")):
                    got = error_of(os.rename, *pair)
                    check(got in ("ok", "ENOENT", "ENOTEMPTY", "EEXIST",
                                  "EINVAL"), f"rename: {got}")
        return go

    def walker():
        for _ in range(60):
            for folder, _, names in os.walk(t.dir):
                for name in names:
                    got = error_of(read_file, os.path.join(folder, name))
                    check(got in ("ok", "ENOENT"), f"read: {got}")
    in_parallel(mover(1), mover(2), walker, walker)
    out = run("find", t.dir, "-name", "f").out.splitlines()
    equal(len(out), 16, "files that are left")


@test(folder=True, threads=True)
def c01_create_and_unlink_of_the_same_names(t):
    t.setup()

    def racer(me):
        def go():
            rng = random.Random(me)
            for _ in range(1500):
                name = f"{t.dir}/{rng.randrange(5)}"
                action = rng.randrange(5)
                if action == 0:
                    got = error_of(os.open, name,
                                   os.O_CREAT | os.O_EXCL | os.O_WRONLY)
                elif action == 1:
                    got = error_of(os.unlink, name)
                elif action == 2:
                    got = error_of(os.link, name, name + "l")
                    error_of(os.unlink, name + "l")
                elif action == 3:
                    got = error_of(os.rename, name,
                                   f"{t.dir}/{rng.randrange(5)}")
                else:
                    got = error_of(os.mkdir, name + "d")
                    error_of(os.rmdir, name + "d")
                check(got in ("ok", "EEXIST", "ENOENT"), f"{action}: {got}")
        return go
    in_parallel(*[racer(i) for i in range(5)])
    for name in os.listdir(t.dir):
        equal(os.stat(f"{t.dir}/{name}").st_nlink, 1, f"links of {name}")


@test(folder=True, threads=True)
def c01_writers_of_different_blocks_of_one_file(t):
    t.setup()
    path, pieces, workers = t.dir + "/f", 1200, 4
    write_file(path, b"")

    def writer(me):
        def go():
            fd = os.open(path, os.O_RDWR)
            order = list(range(me, pieces, workers))
            random.Random(me).shuffle(order)
            for i in order:
                os.pwrite(fd, b"%06d " % i * 100, i * 700)
            os.fsync(fd)
            os.close(fd)
        return go
    in_parallel(*[writer(i) for i in range(workers)])
    t.remount()
    got = read_file(path)
    for i in range(pieces):
        equal(got[i * 700:i * 700 + 700], b"%06d " % i * 100, f"piece {i}")


@test(threads=True, timeout=300)
def c05_interrupted_clients_leave_no_stuck_mount(t):
    need("rsync")
    t.setup()
    source = t.path("source")
    make_tree(source, files=1500, special=False)
    rng = random.Random(14)
    for i in range(50 if t.long else 12):
        p = subprocess.Popen(["rsync", "-a", source + "/", t.dir + "/to/"],
                             stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.01, 0.3))      # a moment of no meaning
        p.send_signal(rng.choice([signal.SIGINT, signal.SIGKILL]))
        p.wait(60)
        run("ls", t.point, timeout=60)
    run("rsync", "-a", "--delete", source + "/", t.dir + "/to/")
    same_tree(tree(t.dir + "/to"), tree(source), "after the last rsync")


@test()
def c07_open_files_cost_the_daemon_no_descriptors(t):
    t.setup()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    want = min(hard, 50_100 if t.long else 6_100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (want, hard))
    if want < 2000:
        raise Skip(f"only {want} files may be open here")
    files = []
    for i in range(want - 100):
        fd = os.open(f"{t.dir}/{i}", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"%d" % i)
        files.append(fd)
    if t.is_root:
        n = len(os.listdir(f"/proc/{t.daemon}/fd"))
        check(n < 100, f"{len(files)} open files: the daemon has {n}")
    write_file(t.dir + "/another", b"fine", sync=True)
    for i, fd in enumerate(files):
        equal(os.pread(fd, 20, 0), b"%d" % i, f"file {i}")
        os.close(fd)


@test(timeout=600)
def f05_memory_stays_bounded(t):
    """A number of files whose nodes exceed a small cache by far; the bound
    is generous, the growth it would catch is not."""
    need_true_memory()
    t.mount_options = ["-o", "cache=16M"]
    t.setup()

    def resident():
        with open(f"/proc/{t.daemon}/status") as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) * KIB

    def churn(base):
        for i in range(3000):
            d = f"{t.dir}/{base}-{i % 30}"
            os.makedirs(d, exist_ok=True)
            write_file(f"{d}/{i}", b"x" * 2000)
        for i in range(30):
            shutil.rmtree(f"{t.dir}/{base}-{i}")

    churn(0)
    first = resident()
    for base in range(1, 12 if t.long else 5):
        churn(base)
    run("find", t.dir)
    grown = resident() - first
    check(grown < 50 * MIB, f"{grown // MIB} MiB more after the same again")


@test(threads=True)
def several_mounts_of_different_containers(t):
    t.setup()
    others = []
    for i in range(3):
        c, p = t.path(f"{i}.tusk"), t.path(f"m{i}")
        os.mkdir(p)
        t.create(container=c)
        mine = t.daemon
        t.mount(container=c, point=p)
        others.append((c, p, t.daemon))
        t.daemon = mine

    def work(p, seed):
        def go():
            make_tree(p + "/tree", files=80, seed=seed)
        return go
    in_parallel(*[work(p, i) for i, (_, p, _) in enumerate(others)])
    for i, (c, p, d) in enumerate(others):
        t.umount(point=p, daemon=d)
        t.check(container=c)
    t.alive("the others were unmounted")
