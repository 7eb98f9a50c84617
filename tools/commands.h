/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The rows of the command table in tusk.c, each defined in the file that is
 * named like the command (key.c has all of `tusk key`).
 */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

#include "tools/command.h"

extern const struct tool_command check_command;
extern const struct tool_command compare_command;
extern const struct tool_command create_command;
extern const struct tool_command info_command;
extern const struct tool_command key_change_command;
extern const struct tool_command key_list_command;
extern const struct tool_command list_command;
extern const struct tool_command mount_command;
/* As mount(8) calls it for fstab, under the names in tusk.c. */
extern const struct tool_command mount_helper_command;
extern const struct tool_command replay_command;
extern const struct tool_command trace_info_command;
extern const struct tool_command umount_command;

#endif
