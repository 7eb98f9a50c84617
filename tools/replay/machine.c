/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From /proc, uname(2) and libgcrypt.  What can't be read is "unknown": a
 * comparison does not fail for it.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/hardware.h"
#include "tools/json.h"
#include "tools/mounts.h"
#include "tools/replay/machine.h"
#include "tools/units.h"

/* "model name\t: AMD Ryzen..."; others than x86 have other names for it. */
static void read_cpu(char out[static MACHINE_TEXT])
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	char line[MACHINE_TEXT];

	snprintf(out, MACHINE_TEXT, "unknown");
	while (in && fgets(line, sizeof(line), in)) {
		char *value = strchr(line, ':');

		if (!value || (strncmp(line, "model name", 10) != 0 &&
			       strncmp(line, "Model", 5) != 0))
			continue;
		value += 1 + strspn(value + 1, " \t");
		value[strcspn(value, "\n")] = '\0';
		snprintf(out, MACHINE_TEXT, "%s", value);
		break;
	}
	if (in)
		fclose(in);
}

static void read_features(char out[static MACHINE_TEXT])
{
	auto_hardware struct hardware h;
	size_t len = 0;

	hardware_get(&h);
	out[0] = '\0';
	for (size_t i = 0; i < h.nr && len < MACHINE_TEXT; i++)
		len += (size_t)snprintf(out + len, MACHINE_TEXT - len, "%s%s",
					i ? " " : "", h.name[i]);
	if (!*out)
		snprintf(out, MACHINE_TEXT, "none that are known");
}

void machine_get(struct machine *m)
{
	const long pages = sysconf(_SC_PHYS_PAGES);
	const long page = sysconf(_SC_PAGESIZE);
	struct utsname u;

	read_cpu(m->cpu);
	read_features(m->features);
	snprintf(m->kernel, sizeof(m->kernel), "unknown");
	if (!uname(&u))
		snprintf(m->kernel, sizeof(m->kernel), "%.64s %.64s %.64s",
			 u.sysname, u.release, u.machine);
	m->libgcrypt = hardware_library_version();
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	m->memory_bytes =
		pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* Whether the absolute @path is @dir or below it. */
static bool is_below(const char *path, const char *dir)
{
	const size_t len = strlen(dir);

	if (!strcmp(dir, "/"))
		return true;
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]);
}

/* The mount with the longest path; of equal ones the last is on top. */
void machine_file_system(const char *dir, char out[static MACHINE_TEXT])
{
	char *const path = realpath(dir, NULL);
	struct mounts m = { 0 };
	size_t best = 0;

	snprintf(out, MACHINE_TEXT, "unknown");
	if (path && !mounts_read(&m)) {
		for (size_t i = 0; i < m.nr; i++) {
			const size_t len = strlen(m.entry[i].dir);

			if (!is_below(path, m.entry[i].dir) || len < best)
				continue;
			best = len;
			snprintf(out, MACHINE_TEXT, "%s", m.entry[i].type);
		}
	}
	mounts_destroy(&m);
	free(path);
}

void machine_text(FILE *out, const struct machine *m)
{
	char memory[UNITS_TEXT_BYTES], text[4 * MACHINE_TEXT];

	units_format_size(m->memory_bytes, memory);
	snprintf(text, sizeof(text),
		 "Machine: %s, %ld CPUs, %s; %s; libgcrypt %s", m->cpu, m->cpus,
		 memory, m->kernel, m->libgcrypt);
	command_wrap(out, text, 0, 0);
	snprintf(text, sizeof(text), "Cipher instructions in use: %s",
		 m->features);
	command_wrap(out, text, 0, 0);
}

struct json_object *machine_json(const struct machine *m)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "cpu", m->cpu);
	json_add_text(o, "cpu_features", m->features);
	json_add_number(o, "cpus", m->cpus > 0 ? (uint64_t)m->cpus : 0);
	json_add_number(o, "memory_bytes", m->memory_bytes);
	json_add_text(o, "kernel", m->kernel);
	json_add_text(o, "libgcrypt", m->libgcrypt);
	return o;
}
