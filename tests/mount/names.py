# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, folders, links, renames."""

import os
import random
import stat
import subprocess

from kit import *

NOBODY = 65534


@test(folder=True)
def p18_names_are_bytes(t):
    t.setup()
    top = os.fsencode(t.dir)
    names = [b"caf\xc3\xa9", b"cafe\xcc\x81", b"caf\xe9", b"\x01", b"a\nb",
             b"trailing ", b" leading", b"-rf", b"\xff" * 255, b"a" * 255,
             b"Case", b"case", b"...", b"..a", b"\\", b"'\"", b"*", b"\x7f",
             b".fuse_hidden", b"\xed\xa0\x80", "\u202e".encode(), b"con",
             b"a:b", b"stats"]
    for name in names:
        write_file(os.path.join(top, name), b"content of " + name)
    equal(sorted(os.listdir(top)), sorted(names), "listed")
    t.remount()
    equal(sorted(os.listdir(top)), sorted(names), "listed after the remount")
    for name in names:
        equal(read_file(os.path.join(top, name)), b"content of " + name,
              repr(name))
    fails_with("ENAMETOOLONG", write_file, top + b"/" + b"n" * 256, b"")
    fails_with("ENAMETOOLONG", os.mkdir, top + b"/" + b"n" * 256)
    fails_with("ENAMETOOLONG", os.stat, top + b"/" + b"n" * 256)
    equal(os.statvfs(top).f_namemax, 255, "longest name")


@test(folder=True)
def long_symlinks_and_their_errors(t):
    t.setup()
    for length in (1, 59, 60, 1023, 1024, 1025, 4000, 4095):
        os.symlink("t" * length, f"{t.dir}/{length}")
    t.remount()
    for length in (1, 59, 60, 1023, 1024, 1025, 4000, 4095):
        equal(os.readlink(f"{t.dir}/{length}"), "t" * length, "target")
        equal(os.lstat(f"{t.dir}/{length}").st_size, length, "size")
    fails_with("ENAMETOOLONG", os.symlink, "t" * 4096, t.dir + "/no")
    fails_with("ENOENT", os.symlink, "", t.dir + "/no")
    fails_with("EEXIST", os.symlink, "x", t.dir + "/1")
    os.symlink("loop", t.dir + "/loop")
    fails_with("ELOOP", os.open, t.dir + "/loop", os.O_RDONLY)


@test(folder=True)
def p20_namespace_errors_are_those_of_a_plain_folder(t):
    t.setup()
    for top in (t.dir, t.ref):
        os.makedirs(top + "/full/sub")
        os.mkdir(top + "/empty")
        os.mkdir(top + "/empty2")
        write_file(top + "/file", b"f")
        write_file(top + "/file2", b"g")
        write_file(top + "/full/inside", b"i")
        os.link(top + "/file", top + "/twin")
        os.symlink("file", top + "/link")
        os.symlink("nowhere", top + "/dangling")
    o = os
    calls = [
        (o.rmdir, "full"), (o.rmdir, "file"), (o.rmdir, "link"),
        (o.rmdir, "missing"), (o.rmdir, "full/."), (o.rmdir, "full/sub/.."),
        (o.unlink, "full"), (o.unlink, "empty"), (o.unlink, "missing"),
        (o.unlink, "file/x"), (o.unlink, "link/x"),
        (o.rename, "full", "full/sub/in"), (o.rename, "full", "full/x"),
        (o.rename, "full/sub", "full"), (o.rename, "empty", "full"),
        (o.rename, "empty", "file"), (o.rename, "file", "empty"),
        (o.rename, "file", "full"), (o.rename, "file", "twin"),
        (o.rename, "missing", "x"), (o.rename, "file", "none/x"),
        (o.rename, "file", "file2/x"), (o.rename, "full", "file/x"),
        (o.rename, "empty/.", "x"), (o.rename, "empty", "full/.."),
        (o.rename, "full", "full"), (o.rename, "empty2", "empty"),
        (o.rename, "dangling", "file2"),
        (o.mkdir, "full"), (o.mkdir, "file"), (o.mkdir, "link"),
        (o.mkdir, "dangling"), (o.mkdir, "none/x"), (o.mkdir, "file/x"),
        (o.link, "full", "x"), (o.link, "file", "full"),
        (o.link, "file", "file"), (o.link, "missing", "x"),
        (o.link, "twin", "none/x"),
        (o.mkfifo, "file"), (o.mkfifo, "none/x"),
        (o.readlink, "file"), (o.readlink, "full"), (o.readlink, "missing"),
        (o.listdir, "file"), (o.listdir, "missing"),
        (o.truncate, "full", 0), (o.truncate, "missing", 0),
        (o.truncate, "file", -1),
        (o.open, "full", o.O_WRONLY), (o.open, "full", o.O_RDWR),
        (o.open, "full", o.O_RDONLY | o.O_CREAT),
        (o.open, "file", o.O_RDONLY | o.O_DIRECTORY),
        (o.open, "file", o.O_CREAT | o.O_EXCL | o.O_WRONLY),
        (o.open, "dangling", o.O_CREAT | o.O_EXCL | o.O_WRONLY),
        (o.open, "link", o.O_RDONLY | o.O_NOFOLLOW),
        (o.open, "file/", o.O_RDONLY), (o.open, "missing/", o.O_RDONLY),
        (o.open, "new/", o.O_CREAT | o.O_WRONLY),
        (o.open, "none/x", o.O_CREAT | o.O_WRONLY),
    ]
    for function, *args in calls:
        def there(top):
            return [f"{top}/{a}" if isinstance(a, str) else a for a in args]
        want = error_of(function, *there(t.ref))
        got = error_of(function, *there(t.dir))
        equal(got, want, f"{function.__name__}{args}")
    same_tree(tree(t.dir, times=False), tree(t.ref, times=False),
              "what is left")
    t.remount()
    same_tree(tree(t.dir, times=False), tree(t.ref, times=False),
              "what is left after a remount")


@test(folder=True)
def p20_flags_of_rename_and_their_errors(t):
    t.setup()
    d = t.dir
    write_file(d + "/a", b"A")
    write_file(d + "/b", b"B")
    os.makedirs(d + "/dir/sub")
    fails_with("EEXIST", renameat2, d + "/a", d + "/b", RENAME_NOREPLACE)
    fails_with("EEXIST", renameat2, d + "/a", d + "/a", RENAME_NOREPLACE)
    renameat2(d + "/a", d + "/c", RENAME_NOREPLACE)
    equal((read_file(d + "/c"), os.path.exists(d + "/a")), (b"A", False),
          "after NOREPLACE")
    renameat2(d + "/c", d + "/b", RENAME_EXCHANGE)
    equal((read_file(d + "/b"), read_file(d + "/c")), (b"A", b"B"),
          "after EXCHANGE")
    fails_with("ENOENT", renameat2, d + "/b", d + "/none", RENAME_EXCHANGE)
    fails_with("EINVAL", renameat2, d + "/dir", d + "/dir/sub",
               RENAME_EXCHANGE)
    fails_with("EINVAL", renameat2, d + "/b", d + "/c",
               RENAME_EXCHANGE | RENAME_NOREPLACE)
    renameat2(d + "/dir/sub", d + "/b", RENAME_EXCHANGE)
    check(os.path.isdir(d + "/b") and os.path.isfile(d + "/dir/sub"),
          "a folder and a file did not change places")
    equal((os.stat(d).st_nlink, os.stat(d + "/dir").st_nlink), (4, 2),
          "link counts of the folders")
    t.remount()
    check(os.path.isdir(d + "/b"), "after the remount b is no folder")
    equal(read_file(d + "/dir/sub"), b"A", "after the remount")


@test(folder=True, threads=True)
def p14_of_two_noreplace_renames_one_wins(t):
    t.setup()
    rounds = 150
    for side in "xy":
        os.mkdir(f"{t.dir}/{side}")
        for i in range(rounds):
            write_file(f"{t.dir}/{side}/{i}", side.encode())

    def racer(side):
        def go():
            won = 0
            for i in range(rounds):
                got = error_of(renameat2, f"{t.dir}/{side}/{i}",
                               f"{t.dir}/{i}", RENAME_NOREPLACE)
                check(got in ("ok", "EEXIST"), f"rename: {got}")
                won += got == "ok"
            write_file(f"{t.dir}/won-{side}", str(won).encode())
        return go

    in_parallel(racer("x"), racer("y"))
    won = [int(read_file(f"{t.dir}/won-{s}")) for s in "xy"]
    equal(sum(won), rounds, "renames that succeeded")
    left = [len(os.listdir(f"{t.dir}/{s}")) for s in "xy"]
    equal(sum(left), rounds, "files left behind")
    for i in range(rounds):
        side = read_file(f"{t.dir}/{i}").decode()
        check(not os.path.exists(f"{t.dir}/{side}/{i}"), f"{i} is there twice")


@test(root=True, folder=True)
def p14_whiteout_works_or_is_refused(t):
    t.setup()
    write_file(t.dir + "/a", b"A")
    got = error_of(renameat2, t.dir + "/a", t.dir + "/b", RENAME_WHITEOUT)
    check(got in ("ok", "EINVAL"), f"WHITEOUT: {got}")
    if got == "ok":
        t.remount()
        st = os.lstat(t.dir + "/a")
        equal((stat.S_IFMT(st.st_mode), st.st_rdev), (stat.S_IFCHR, 0),
              "what stays behind")
        equal(read_file(t.dir + "/b"), b"A", "what was moved")


@test(folder=True)
def p14_o_tmpfile_works_or_says_so(t):
    t.setup()
    try:
        fd = os.open(t.dir, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError as e:
        check(e.errno == 95, f"O_TMPFILE: {e}")
        return
    os.write(fd, b"nameless")
    equal(os.fstat(fd).st_nlink, 0, "links")
    own = os.open("/proc/self/fd", os.O_RDONLY)     # makes Python follow
    os.link(str(fd), t.dir + "/named", src_dir_fd=own)
    os.close(fd)
    t.remount()
    equal(read_file(t.dir + "/named"), b"nameless", "content")


@test(root=True)
def p14_overlay_with_the_mount_above(t):
    """Where the kernel takes a FUSE folder as an overlay's upper one."""
    t.setup()
    lower, merged = t.path("lower"), t.path("merged")
    for d in (lower, merged, t.dir + "/up", t.dir + "/w"):
        os.mkdir(d)
    make_tree(lower, files=30, special=False)
    done = run("mount", "-t", "overlay", "-o",
               f"lowerdir={lower},upperdir={t.dir}/up,workdir={t.dir}/w",
               "none", merged, expect=None)
    if done.returncode:
        raise Skip("this kernel takes no FUSE folder as upper one")
    try:
        write_file(merged + "/new", b"new")
        victim = next(n for n in os.listdir(merged) if n.startswith("file"))
        os.unlink(f"{merged}/{victim}")
        check(victim not in os.listdir(merged), "the deleted file is listed")
        equal(read_file(t.dir + "/up/new"), b"new", "in the upper folder")
        check(os.path.exists(f"{lower}/{victim}"), "the lower file is gone")
    finally:
        run("umount", merged)


@test(folder=True)
def p12_ten_thousand_links_to_one_file(t):
    t.setup()
    first = t.dir + "/f"
    write_file(first, b"shared")
    os.setxattr(first, "user.a", b"too")
    inode = os.stat(first).st_ino
    folders = 100
    each = 100 if not t.on else 10
    n = 1
    for d in range(folders):
        os.mkdir(f"{t.dir}/{d}")
        for i in range(each):
            os.link(first, f"{t.dir}/{d}/{i}")
            n += 1
            if i % 10 == 0:
                equal(os.stat(first).st_nlink, n, "links while linking")
    t.remount()
    equal(os.stat(first).st_nlink, n, "links after the remount")
    equal(os.stat(f"{t.dir}/57/3").st_ino, inode, "inode number")
    with open(f"{t.dir}/57/3", "ab") as f:
        f.write(b" by all")
    equal(read_file(first), b"shared by all", "content by another name")
    equal(os.getxattr(t.dir + "/3/3", "user.a"), b"too", "attribute")
    for d in range(folders):
        for i in range(each):
            os.unlink(f"{t.dir}/{d}/{i}")
            n -= 1
            if i % 10 == 0:
                equal(os.stat(first).st_nlink, n, "links while unlinking")
    equal(os.stat(first).st_nlink, 1, "links at the end")
    fails_with("EPERM", os.link, t.dir + "/0", t.dir + "/folder-link")


@test(folder=True)
def p12_cp_al_of_a_tree(t):
    t.setup()
    make_tree(t.dir + "/tree", files=60)
    run("cp", "-al", t.dir + "/tree", t.dir + "/again")
    t.remount()
    a, b = (tree(f"{t.dir}/{d}", inodes=True) for d in ("tree", "again"))
    for path, entry in a.items():
        if "sha" in entry:
            equal(b[path]["ino"], entry["ino"], f"inode of {path!r}")
            check(entry["nlink"] >= 2, f"{path!r} has one link")


@test(folder=True)
def p02_an_unlinked_open_file_stays_usable(t):
    t.setup()
    d = t.dir + "/d"
    os.mkdir(d)
    fd = os.open(d + "/f", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"before")
    if not t.on:
        os.fsync(fd)
        before = used_blocks(t.dir)
    os.unlink(d + "/f")
    equal(os.listdir(d), [], "what the folder holds")
    os.rmdir(d)
    data = pattern("unlinked", 10 * MIB)
    os.pwrite(fd, data, 0)
    os.fsync(fd)
    equal(os.fstat(fd).st_nlink, 0, "links")
    equal(os.fstat(fd).st_size, 10 * MIB, "size")
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    check(os.pread(fd, 10 * MIB, 0) == data, "other bytes come back")
    check(not any(".fuse_hidden" in n for n in os.listdir(t.dir)),
          "a stand-in file can be seen")
    if not t.on:
        used = used_blocks(t.dir) - before
        check(used > 2000, f"10 MiB use {used} blocks")
    os.close(fd)
    if not t.on:
        def back():
            fsync_path(t.dir)
            return used_blocks(t.dir) <= before + 64
        wait_until(back, 60, "the space of the file came back")


def used_blocks(path):
    """Ours: what is free depends on the host, which others fill as well."""
    st = os.statvfs(path)
    return st.f_blocks - st.f_bfree


@test()
def p02_kill_before_the_close_leaves_no_orphan(t):
    t.setup()
    write_file(t.dir + "/keep", b"k", sync=True)
    fsync_path(t.dir)
    before = used_blocks(t.dir)
    fd = os.open(t.dir + "/gone", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 8 * MIB)
    os.unlink(t.dir + "/gone")
    os.fsync(fd)
    t.kill()
    fails_with("ENOTCONN", os.fsync, fd)
    os.close(fd)
    t.tusk("umount", t.point)
    t.check()
    t.mount()
    equal(os.listdir(t.dir), ["keep"], "names")

    def back():
        fsync_path(t.dir)
        return used_blocks(t.dir) <= before + 64
    wait_until(back, 60, "the space of the file came back")


@test()
def w02_unmount_with_an_unlinked_file_frees_it(t):
    """FORGET may never come: the file was unlinked while open, then closed
    just before the unmount."""
    t.setup()
    before = used_blocks(t.dir)
    for i in range(20):
        fd = os.open(f"{t.dir}/{i}", os.O_RDWR | os.O_CREAT)
        os.write(fd, b"x" * MIB)
        os.unlink(f"{t.dir}/{i}")
        os.close(fd)
    t.remount()
    lost = used_blocks(t.dir) - before
    check(lost < 256, f"{lost} blocks are lost")


@test(folder=True)
def a_folder_with_20_000_entries(t):
    t.setup()
    n = 20_000
    for i in range(n):
        os.close(os.open(f"{t.dir}/entry-{i}", os.O_CREAT | os.O_WRONLY))
    names = os.listdir(t.dir)
    equal((len(names), len(set(names))), (n, n), "entries, different ones")
    t.remount()
    equal(set(os.listdir(t.dir)), {f"entry-{i}" for i in range(n)},
          "after the remount")
    out = run("sh", "-c", "ls -f | wc -l", cwd=t.dir).out
    equal(int(out), n + 2, "ls -f")
    run("find", t.dir, "-name", "entry-*7", "-delete")
    equal(len(os.listdir(t.dir)), n - n // 10, "after find -delete")
    run("rm", "-rf", t.dir)
    check(not os.path.exists(t.dir), "rm -rf left it")


@test(folder=True)
def w10_listing_while_names_change(t):
    """Names there all the time are listed exactly once."""
    t.setup()
    stay = {f"stay-{i}" for i in range(1500)}
    for name in stay:
        write_file(f"{t.dir}/{name}", b"")
    stop = t.path("stop")

    def change():
        rng = random.Random(4)
        while not os.path.exists(stop):
            i = rng.randrange(300)
            write_file(f"{t.dir}/come-{i}", b"")
            os.rename(f"{t.dir}/come-{i}", f"{t.dir}/went-{i}")
            if i % 2:
                os.unlink(f"{t.dir}/went-{i}")

    def look():
        try:
            for _ in range(60):
                names = os.listdir(t.dir)
                equal(len(names), len(set(names)), "a name comes twice")
                check(stay <= set(names),
                      f"missing: {sorted(stay - set(names))[:3]}")
        finally:
            write_file(stop, b"")
    in_parallel(change, look)


@test(folder=True)
def w10_names_are_seen_or_gone_at_once(t):
    t.setup()
    for i in range(300):
        write_file(f"{t.dir}/{i}", b"")
        check(str(i) in os.listdir(t.dir), "a new name is not listed")
        if i % 3 == 0:
            os.unlink(f"{t.dir}/{i}")
            check(str(i) not in os.listdir(t.dir), "an old name is listed")
            check(not os.path.exists(f"{t.dir}/{i}"), "it can be opened")


@test(folder=True)
def w08_link_counts_of_folders(t):
    t.setup()
    equal(os.stat(t.dir).st_nlink, 2, "an empty folder")
    for i in range(5):
        os.mkdir(f"{t.dir}/{i}")
    equal(os.stat(t.dir).st_nlink, 7, "with five in it")
    os.rmdir(t.dir + "/0")
    os.rename(t.dir + "/1", t.dir + "/2/in")
    equal((os.stat(t.dir).st_nlink, os.stat(t.dir + "/2").st_nlink), (5, 3),
          "after rmdir and a move")
    t.remount()
    equal((os.stat(t.dir).st_nlink, os.stat(t.dir + "/2").st_nlink), (5, 3),
          "after the remount")


@test(folder=True)
def w09_negative_entries_do_not_hide_a_new_name(t):
    t.setup()
    for i in range(100):
        a, b = f"{t.dir}/a{i}", f"{t.dir}/b{i}"
        check(not os.path.exists(a) and not os.path.exists(b), "too early")
        write_file(a, str(i).encode())
        equal(read_file(a), str(i).encode(), "after create")
        os.rename(a, b)
        check(not os.path.exists(a), "the old name is still there")
        equal(read_file(b), str(i).encode(), "after rename")
        os.link(b, a)
        equal(os.stat(a).st_nlink, 2, "after link")


@test(folder=True)
def w09_rename_over_an_open_file_keeps_the_old_one_open(t):
    t.setup()
    write_file(t.dir + "/old", b"old")
    write_file(t.dir + "/new", b"new")
    fd = os.open(t.dir + "/old", os.O_RDONLY)
    os.rename(t.dir + "/new", t.dir + "/old")
    equal(read_file(t.dir + "/old"), b"new", "by name")
    equal(os.pread(fd, 10, 0), b"old", "by the open file")
    equal(os.fstat(fd).st_nlink, 0, "links")
    os.close(fd)


@test(folder=True)
def deep_folders(t):
    t.setup()
    depth = 1000
    fd = os.open(t.dir, os.O_RDONLY)
    for i in range(depth):
        os.mkdir("d", dir_fd=fd)
        down = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = down
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    t.remount()
    out = run("find", t.dir, "-name", "bottom").out
    equal(out.count("/d/") + out.count("/d\n"), depth // 2, "depth found")
    run("rm", "-rf", t.dir + "/d")


@test(folder=True)
def inode_numbers_are_unique_and_stay(t):
    t.setup()
    numbers = {}
    for i in range(500):
        path = f"{t.dir}/{i}"
        os.mkdir(path) if i % 3 == 0 else write_file(path, b"")
        numbers[path] = os.lstat(path).st_ino
    equal(len(set(numbers.values())), 500, "different numbers")
    t.remount()
    equal({p: os.lstat(p).st_ino for p in numbers}, numbers, "remounted")
    listed = {e.path: e.inode() for e in os.scandir(t.dir)}
    equal(listed, numbers, "as readdir says")


@test(folder=True)
def readdir_tells_types(t):
    t.setup()
    write_file(t.dir + "/file", b"")
    os.mkdir(t.dir + "/folder")
    os.symlink("file", t.dir + "/link")
    os.mkfifo(t.dir + "/fifo")
    t.remount()
    kinds = {e.name: (e.is_file(follow_symlinks=False),
                      e.is_dir(follow_symlinks=False), e.is_symlink())
             for e in os.scandir(t.dir)}
    equal(kinds, {"file": (True, False, False), "folder": (False, True, False),
                  "link": (False, False, True), "fifo": (False,) * 3}, "types")


@test(folder=True)
def an_editor_saves(t):
    """Write beside, sync, rename over; backup by link; content in between is
    always whole."""
    t.setup()
    path = t.dir + "/document"
    for version in range(40):
        text = f"version {version}\n".encode() * 500
        tmp = f"{t.dir}/.document.swp"
        write_file(tmp, text, sync=True)
        if version:
            os.chmod(tmp, stat.S_IMODE(os.stat(path).st_mode))
            if os.path.exists(path + "~"):
                os.unlink(path + "~")
            os.link(path, path + "~")
        os.rename(tmp, path)
        fsync_path(t.dir)
        equal(read_file(path), text, "what was saved")
    t.remount()
    equal(read_file(path), b"version 39\n" * 500, "after the remount")
    equal(read_file(path + "~"), b"version 38\n" * 500, "the backup")
    equal(sorted(os.listdir(t.dir)), ["document", "document~"], "names")


@test(folder=True)
def a_file_manager_works_with_trash_and_watches(t):
    t.setup()
    need("mv")
    trash = f"{t.dir}/.Trash-{os.getuid()}"
    os.makedirs(trash + "/files", 0o700)
    os.makedirs(trash + "/info", 0o700)
    make_tree(t.dir + "/Photos", files=40, special=False)
    before = tree(t.dir + "/Photos")
    write_file(trash + "/info/Photos.trashinfo",
               b"[Trash Info]\nPath=Photos\n")
    os.rename(t.dir + "/Photos", trash + "/files/Photos")
    check(not os.path.exists(t.dir + "/Photos"), "still there")
    same_tree(tree(trash + "/files/Photos"), before, "in the trash")
    run("mv", trash + "/files/Photos", t.dir + "/Photos")
    t.remount()
    same_tree(tree(t.dir + "/Photos"), before, "out of the trash")
    st = os.statvfs(t.dir)
    check(st.f_bavail > 0 and st.f_blocks >= st.f_bfree >= st.f_bavail,
          "free space makes no sense")
    os.chdir(t.dir + "/Photos")
    os.rename(t.dir + "/Photos", t.dir + "/Pictures")
    equal(os.getcwd(), t.dir + "/Pictures", "the current folder's name")
    os.chdir("/")
    run("rm", "-r", t.dir + "/Pictures")
