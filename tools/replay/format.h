/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Times and rates for people, from whole numbers, the same in every locale.
 */
#ifndef TOOLS_REPLAY_FORMAT_H
#define TOOLS_REPLAY_FORMAT_H

#include <stdint.h>

#define FORMAT_BYTES 32

/* "812 ns", "5.31 us", "12.4 ms", "2.05 s", "1234 s" */
void format_ns(uint64_t ns, char out[static FORMAT_BYTES]);

/* Bytes a second as "25.1", in MB (10^6 bytes) */
void format_mb(uint64_t bytes, char out[static FORMAT_BYTES]);

/* Thousandths as "12.3" (one digit) */
void format_milli(int64_t milli, char out[static FORMAT_BYTES]);

/* @bytes over @ns, a second; 0 if no time has passed. */
uint64_t format_rate(uint64_t bytes, uint64_t ns);

#endif
