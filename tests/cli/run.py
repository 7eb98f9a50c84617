#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""tusk from its command line, without a mount.

    tests/cli/run.py --tusk PATH [--seed N] [--only PART-OF-A-NAME]

Prints a line `ok NAME` or `not ok NAME` for each case, and in the end
`N passed, M failed, K skipped`.  Names begin with the case of the collection
they come from (M01, M09, K01...) where there is one.
"""

import argparse
import os
import sys

import kit
import create       # noqa: F401: its cases register themselves
import damage       # noqa: F401
import general      # noqa: F401
import keys         # noqa: F401
import passwords    # noqa: F401


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tusk", required=True)
    parser.add_argument("--seed", type=int, default=os.getpid())
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    # The cases run in folders of their own.
    sys.exit(kit.main(os.path.abspath(args.tusk), args.seed, args.only))


main()
