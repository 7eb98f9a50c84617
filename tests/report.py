#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Add up what the test runs said.

    tests/report.py RUN=FILE.json... [--sanitizer-logs DIR] [--also N,M]

Each FILE is a testlog.json of `meson test`.  A test program is counted by the
cases it reports (`N passed, M failed`, Criterion's synthesis) or, without such
a line, as one.  A case that ran in several builds counts once: as failed if
it failed in any of them.  The last line is `N passed, M failed`.
"""

import json
import os
import re
import sys

SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", re.M)
CRITERION = re.compile(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| "
                       r"Failing: (\d+) \| Crashing: (\d+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SANITIZER = re.compile(r"(ERROR: (?:Address|Leak|Thread|Memory)Sanitizer.*|"
                       r"WARNING: ThreadSanitizer.*|.*: runtime error: .*)")


def cases(entry):
    """(passed, failed, skipped) of one test program."""
    text = COLOUR.sub("", (entry.get("stdout") or "") + "\n" +
                      (entry.get("stderr") or ""))
    passed = failed = skipped = 0
    said = SUMMARY.findall(text)
    criterion = CRITERION.findall(text)
    if said:
        passed, failed, skipped = (int(x or 0) for x in said[-1])
    elif criterion:
        for tested, passing, failing, crashing in criterion:
            passed += int(passing)
            failed += int(failing) + int(crashing)
            skipped += int(tested) - int(passing) - int(failing) - \
                int(crashing)
    elif entry["result"] == "OK":
        passed = 1
    result = entry["result"]
    if result == "SKIP":
        skipped = max(skipped, 1)
    elif result not in ("OK", "EXPECTEDFAIL") and failed == 0:
        failed = 1
    return passed, failed, max(skipped, 0)


def main():
    logs, runs, extra = None, [], []
    words = sys.argv[1:]
    while words:
        word = words.pop(0)
        if word == "--sanitizer-logs":
            logs = words.pop(0)
        elif word == "--also":
            extra.append([int(x) for x in words.pop(0).split(",")])
        else:
            runs.append(word.split("=", 1))

    total = {}          # test program -> (cases, failed ones)
    bad, skipped_lines, reports = [], [], 0
    for run, path in runs:
        sums = [0, 0, 0]
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                entries = [json.loads(line) for line in f if line.strip()]
        except OSError as e:
            bad.append(f"{run}: no results: {e}")
            total[run] = (1, 1)
            continue
        for entry in entries:
            name = entry["name"]
            got = cases(entry)
            sums = [a + b for a, b in zip(sums, got)]
            old = total.get(name, (0, 0))
            total[name] = (max(old[0], got[0] + got[1]), max(old[1], got[1]))
            if got[1]:
                bad.append(f"{run}: {name}: {got[1]} failed "
                           f"({entry['result']})")
            if got[2]:
                skipped_lines.append(f"{run}: {name}: {got[2]} skipped")
            text = (entry.get("stdout") or "") + (entry.get("stderr") or "")
            for line in SANITIZER.findall(text)[:3]:
                reports += 1
                bad.append(f"{run}: {name}: {line.strip()}")
        print(f"{run}: {sums[0]} passed, {sums[1]} failed, "
              f"{sums[2]} skipped in {len(entries)} programs")

    if logs and os.path.isdir(logs):
        for name in sorted(os.listdir(logs)):
            path = os.path.join(logs, name)
            with open(path, encoding="utf-8", errors="replace") as f:
                text = f.read()
            if text.strip():
                reports += 1
                bad.append(f"sanitizer report {path}:\n" +
                           "\n".join("    " + line for line in
                                     text.splitlines()[:30]))
    passed = sum(n - m for n, m in total.values()) + sum(n for n, _ in extra)
    failed = sum(f for _, f in total.values()) + sum(m for _, m in extra) + \
        reports
    for line in skipped_lines + bad:
        print(line)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
