/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who keeps a mount busy.
 */
#ifndef TOOLS_HOLDERS_H
#define TOOLS_HOLDERS_H

#include <stdbool.h>
#include <sys/types.h>

#define HOLDERS_TEXT_BYTES 512

/*
 * Look through /proc for open files, working and root folders, programs and
 * mappings on @dev, as far as we may look.  @text gets "process 12 (bash), 14
 * (vim)".  Returns whether any was found.  Never asks the mount itself.
 */
bool holders_find(dev_t dev, char text[static HOLDERS_TEXT_BYTES]);

#endif
