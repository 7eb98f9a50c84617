# SPDX-License-Identifier: GPL-3.0-or-later
"""Where passwords come from: files, descriptors, the terminal (case M01)."""

import os
import pty
import select
import signal
import subprocess
import time

from kit import (COST, DONE, FAILED, INTERRUPTED, MIB, USAGE, WRONG, Failure,
                 case, check, equal)

BASE = ["create", *COST, "--no-recovery-key"]


def key(name, data):
    with open(name, "wb") as f:
        f.write(data)
    return name


@case
def m01_line_ends_are_no_part_of_the_password(t):
    t.create(key=key("k", b"p w"))
    for data, right in ((b"p w", True), (b"p w\n", True), (b"p w\r\n", True),
                        (b" p w", False), (b"p w ", False),
                        (b"p w\r", False), (b"P W", False),
                        (b"p w\0", False)):
        equal(t.opens(key("k", data)), right, f"{data!r} opens")


@case
def m01_only_the_first_line_counts_and_more_warns(t):
    t.create(key=key("k", b"one"))
    done = t.good("check", "--password-file", key("k", b"one\ntwo\n"),
                  "c.tusk")
    equal(len(done.lines), 1, "lines")
    check("first line" in done.lines[0], f"{done}")
    done = t.good("check", "--password-file", key("k", b"one\n"), "c.tusk")
    equal(done.lines, [], "warnings")


@case
def m01_odd_passwords(t):
    for data in (b"x" * 4096, b"a\0b", "pässwörd".encode(), b"\xff", b"  ",
                 b"\0", b"\t", b"-"):
        t.create(key=key("k", data))
        check(t.opens("k"), f"{data[:20]!r} does not open")
        os.unlink("c.tusk")


@case
def m01_what_is_no_password(t):
    t.create()
    for data, says in ((b"", "empty"), (b"\n", "empty"), (b"\r\n", "empty"),
                       (b"\nsecret", "empty"), (b"x" * 4097, "4096"),
                       (b"x" * MIB, "4096"), (bytes(5000), "4096")):
        path = key("k", data)
        t.bad(USAGE, "check", "--password-file", path, "c.tusk", says=says)
        t.bad(USAGE, *BASE, "--password-file", path, "d.tusk", says=says)
        t.bad(USAGE, "check", "--password-fd", "0", "c.tusk", input=data,
              says=says)
    for path in ("missing", ".", "/dev/null", "/dev/zero"):
        t.bad(USAGE, "check", "--password-file", path, "c.tusk", says=path)
    check(not os.path.exists("d.tusk"), "a file was made")


@case
def m01_descriptors(t):
    t.create()
    for data, status in ((b"correct horse", DONE), (b"correct horse\n", DONE),
                         (b"nope\n", WRONG)):
        done = t.run("check", "--password-fd", "0", "c.tusk", input=data)
        equal(done.status, status, f"{data!r}")
    fd = os.open("pw", os.O_RDONLY)
    t.good("check", "--password-fd", str(fd), "c.tusk", pass_fds=[fd])
    os.close(fd)
    fd = os.open("pw", os.O_WRONLY)
    t.bad(USAGE, "check", "--password-fd", str(fd), "c.tusk", pass_fds=[fd],
          says="reading")
    os.close(fd)
    for number in ("77", "1000000", "2147483647"):
        t.bad(USAGE, "check", "--password-fd", number, "c.tusk",
              says="not open")
    for number in ("-1", "x", "2147483648", ""):
        t.bad(USAGE, "check", "--password-fd", number, "c.tusk",
              says="number of a descriptor")
    # Something unrelated on stdin is left alone.
    t.good("check", "--password-file", "pw", "c.tusk", input=b"x" * 100)


@case
def m01_a_pipe_that_stays_open_does_not_hang(t):
    t.create()
    reader, writer = os.pipe()
    os.write(writer, b"correct horse\n")
    t.good("check", "--password-fd", str(reader), "c.tusk",
           pass_fds=[reader])
    os.close(reader)
    os.close(writer)


@case
def m01_without_terminal_there_is_no_prompt(t):
    t.create()
    for before in (None, lambda: os.close(0)):
        for args in (["check", "c.tusk"], ["key", "change", "c.tusk"],
                     [*BASE, "d.tusk"]):
            start = time.monotonic()
            t.bad(USAGE, *args, before=before, says="--password-file")
            check(time.monotonic() - start < 10, f"{args}: too slow")
    t.bad(USAGE, "key", "change", "--password-file", "pw", "c.tusk",
          says="--new-password-file")
    t.bad(USAGE, "check", "--password-fd", "0", "c.tusk",
          before=lambda: os.close(0), says="descriptor 0: not open")
    t.bad(USAGE, "check", "--password-fd", "0", "c.tusk",
          says="descriptor 0: no password")
    check(not os.path.exists("d.tusk"), "a file was made")


class Terminal:
    """The program at a terminal, typed to."""

    def __init__(self, t, *args):
        self.args = args
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(t.binary, [t.binary, *args])

    def wait_for(self, text):
        end = time.monotonic() + 60
        while text not in self.output:
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise Failure(f"{self.args}: no {text!r} in {self.output!r}")
        before, self.output = self.output.split(text, 1)
        return before

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:         # EIO: the other side is gone
            return False
        self.output += data
        return bool(data)

    def answer(self, prompt, text):
        self.wait_for(prompt)
        # Echo is off once the prompt is there.
        os.write(self.fd, text)

    def end(self):
        while self.read(60):
            pass
        os.close(self.fd)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


@case
def terminal_asks_twice_for_a_new_password(t):
    term = Terminal(t, *BASE, "c.tusk")
    term.answer(b"New password for c.tusk: ", b"correct horse\n")
    term.answer(b"Repeat", b"correct horse\n")
    equal(term.end(), DONE, f"status; {term.output!r}")
    check(b"horse" not in term.output, "the password is echoed")
    check(t.opens("pw"), "does not open")


@case
def terminal_two_different_passwords_make_nothing(t):
    for second in (b"correct horsf", b"correct", b"correct horse 2"):
        term = Terminal(t, *BASE, "c.tusk")
        term.answer(b"New password", b"correct horse\n")
        term.answer(b"Repeat", second + b"\n")
        equal(term.end(), FAILED, f"status; {term.output!r}")
        check(b"differ" in term.output, f"{term.output!r}")
        check(not os.path.exists("c.tusk"), "a file was made")


@case
def terminal_empty_and_end_of_file(t):
    t.create()
    for text in (b"\n", b"\x04"):
        for args in ([*BASE, "d.tusk"], ["check", "c.tusk"]):
            term = Terminal(t, *args)
            term.answer(b"assword for ", text)
            equal(term.end(), USAGE, f"status; {term.output!r}")
            check(b"empty" in term.output, f"{term.output!r}")
    check(not os.path.exists("d.tusk"), "a file was made")


@case
def terminal_wrong_password_is_asked_for_once(t):
    t.create()
    term = Terminal(t, "check", "c.tusk")
    term.answer(b"Password for c.tusk: ", b"nope\n")
    equal(term.end(), WRONG, f"status; {term.output!r}")
    check(b"wrong password" in term.output, f"{term.output!r}")
    check(b"Password for" not in term.output, "asked again")


@case
def terminal_interrupted(t):
    for times in (0, 1):
        term = Terminal(t, *BASE, "c.tusk")
        for _ in range(times):
            term.answer(b"New password", b"correct horse\n")
        term.wait_for(b"assword for c.tusk: ")
        # readpassphrase() sees a signal only once it waits in read().
        time.sleep(0.3)
        os.write(term.fd, b"\x03")
        status = term.end()
        check(status in (-signal.SIGINT, INTERRUPTED), f"status {status}")
        check(not os.path.exists("c.tusk"), "a file was made")


@case
def terminal_key_change_asks_for_old_and_new(t):
    t.create()
    term = Terminal(t, "key", "change", *COST, "c.tusk")
    term.answer(b"Password for c.tusk: ", b"correct horse\n")
    term.answer(b"New password for c.tusk: ", b"battery staple\n")
    term.answer(b"Repeat", b"battery staple\n")
    equal(term.end(), DONE, f"status; {term.output!r}")
    check(t.opens("new") and not t.opens("pw"), "not changed")


@case
def terminal_names_cannot_steer_it(t):
    name = b"\x1b[31mred\x07\xc2\x9b\xff" + b"n" * 200
    t.create(path=name)
    term = Terminal(t, "check", name)
    said = term.wait_for(b": ")
    check(said.decode().isprintable(), f"{said!r}")
    os.write(term.fd, b"correct horse\n")
    equal(term.end(), DONE, f"status; {term.output!r}")


@case
def secrets_are_not_in_arguments_or_environment(t):
    t.create()
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [t.binary, "check", "--password-fd", str(reader), "c.tusk"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, pass_fds=[reader], start_new_session=True)
    os.write(writer, b"correct ")
    time.sleep(0.2)
    for name in ("cmdline", "environ"):
        try:
            with open(f"/proc/{process.pid}/{name}", "rb") as f:
                check(b"correct" not in f.read(), f"in {name}")
        except PermissionError:
            pass        # undumpable: only root may look
    os.write(writer, b"horse\n")
    os.close(writer)
    process.communicate(timeout=60)
    os.close(reader)
    equal(process.returncode, DONE, "status")
