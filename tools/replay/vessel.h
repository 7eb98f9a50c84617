/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A throw-away container, mounted: in a new folder of its own, made with the
 * tusk program itself, as a user would, with a random password that nobody
 * learns.
 */
#ifndef TOOLS_REPLAY_VESSEL_H
#define TOOLS_REPLAY_VESSEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/tool.h"

struct vessel {
	char *folder;	 /* "DIR/tusk-compare-XXXXXX"; NULL: none */
	char *container; /* in it */
	char *point;	 /* in it: where it is mounted */
	char password[64];
	bool mounted;
	pid_t daemon; /* while mounted; 0: unknown */
};

/*
 * The folder alone, without a container.  As the others, TOOL_DONE or an exit
 * code after a message.
 */
enum tool_exit vessel_make_folder(struct vessel *v, const char *dir);

/* Create it in the folder; mount it. */
enum tool_exit vessel_create(struct vessel *v, const char *scheme,
			     bool integrity);
enum tool_exit vessel_mount(struct vessel *v);

/* What tusk umount does: then all is written. */
enum tool_exit vessel_unmount(struct vessel *v);

/* CPU time of the daemon so far, in ns; 0 if unknown. */
uint64_t vessel_cpu_ns(const struct vessel *v);

/* Unmount if need be and remove all of it. */
enum tool_exit vessel_destroy(struct vessel *v);

#endif
