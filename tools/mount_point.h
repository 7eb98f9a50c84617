/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whether a folder is fit to be mounted on.
 */
#ifndef TOOLS_MOUNT_POINT_H
#define TOOLS_MOUNT_POINT_H

#include <stdbool.h>

#include "tools/tool.h"

enum mount_point_content {
	MOUNT_POINT_EMPTY,    /* refuse a folder that is not */
	MOUNT_POINT_WHATEVER, /* -o nonempty */
};

/*
 * Find out before anything is asked or computed.  A mount of ours whose daemon
 * died is cleared away, if we may.
 *
 * @resolved  the absolute path, to be freed
 *
 * Returns TOOL_DONE, or TOOL_MOUNT_POINT after a message.
 */
must_check enum tool_exit mount_point_check(const char *dir,
					    enum mount_point_content content,
					    char **resolved);

#endif
