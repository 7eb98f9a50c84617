/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Attributes that are part of a function's contract.
 */
#ifndef CIPHER_DEFS_H
#define CIPHER_DEFS_H

#define must_check __attribute__((warn_unused_result))
#define auto_cleanup(fn) __attribute__((cleanup(fn)))

#endif
