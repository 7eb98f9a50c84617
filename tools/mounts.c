/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * mountinfo(5), and a question to a daemon that may hang: asked by a child,
 * since a process that waits for such a mount can only be killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "tools/mounts.h"

/* The kernel writes blank, tab, newline and backslash in octal. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' &&
		    from[2] >= '0' && from[2] <= '7' && from[3] >= '0' &&
		    from[3] <= '7') {
			*to++ = (char)((from[1] - '0') * 64 +
				       (from[2] - '0') * 8 + (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* The number after @name ("user_id=") among @options, or 0. */
static unsigned int id_of(const char *options, const char *name)
{
	const char *found = strstr(options, name);

	return found ? (unsigned int)strtoul(found + strlen(name), NULL, 10)
		     : 0;
}

/* The next field, or NULL; *line moves on. */
static char *field(char **line)
{
	char *f;

	do {
		f = strsep(line, " \n");
	} while (f && !*f);
	return f;
}

/*
 * 36 35 98:0 /root /dir rw,noatime shared:1 - fuse.tuskfs source rw,user_id=0
 */
bool mounts_parse_line(char *line, struct mount_entry *e)
{
	char *dev, *dir, *flags, *type, *source, *options, *f;
	unsigned int major, minor;

	field(&line);
	field(&line);
	dev = field(&line);
	field(&line);
	dir = field(&line);
	flags = field(&line);
	do {
		f = field(&line);
	} while (f && strcmp(f, "-") != 0);
	type = field(&line);
	source = field(&line);
	options = field(&line);
	if (!dev || !dir || !flags || !type || !source || !options ||
	    sscanf(dev, "%u:%u", &major, &minor) != 2)
		return false;

	unescape(dir);
	unescape(source);
	*e = (struct mount_entry){
		.dev = makedev(major, minor),
		.dir = strdup(dir),
		.type = strdup(type),
		.source = strdup(source),
		.ours = !strcmp(type, "fuse." FUSE_SUBTYPE),
		.read_only = !strncmp(flags, "ro", 2) &&
			     (!flags[2] || flags[2] == ','),
		.user = id_of(options, "user_id="),
		.group = id_of(options, "group_id="),
	};
	return true;
}

void mount_entry_destroy(struct mount_entry *e)
{
	free(e->dir);
	free(e->type);
	free(e->source);
}

static int add(struct mounts *m, struct mount_entry *e)
{
	struct mount_entry *more;

	more = reallocarray(m->entry, m->nr + 1, sizeof(*more));
	if (more)
		m->entry = more;
	if (!more || !e->dir || !e->type || !e->source) {
		mount_entry_destroy(e);
		return -ENOMEM;
	}
	m->entry[m->nr++] = *e;
	return 0;
}

int mounts_read(struct mounts *m)
{
	FILE *in = fopen("/proc/self/mountinfo", "re");
	struct mount_entry e;
	char *line = NULL;
	size_t size = 0;
	int err = 0;

	*m = (struct mounts){ 0 };
	if (!in)
		return -errno;
	while (!err && getline(&line, &size, in) >= 0) {
		if (mounts_parse_line(line, &e))
			err = add(m, &e);
	}
	free(line);
	fclose(in);
	return err;
}

void mounts_destroy(struct mounts *m)
{
	for (size_t i = 0; i < m->nr; i++)
		mount_entry_destroy(&m->entry[i]);
	free(m->entry);
	*m = (struct mounts){ 0 };
}

const struct mount_entry *mounts_find(const struct mounts *m, const char *dir)
{
	for (size_t i = m->nr; i-- > 0;) {
		if (!strcmp(m->entry[i].dir, dir))
			return &m->entry[i];
	}
	return NULL;
}

/* @dir by its parent, without looking at what is mounted on it. */
static char *resolve_parent(const char *dir)
{
	char *copy = strdup(dir), *copy2 = strdup(dir);
	char *parent = NULL, *path = NULL;

	if (copy && copy2)
		parent = realpath(dirname(copy), NULL);
	if (parent && asprintf(&path, "%s%s%s", parent, parent[1] ? "/" : "",
			       basename(copy2)) < 0)
		path = NULL;
	free(parent);
	free(copy);
	free(copy2);
	return path;
}

/* realpath() only reads links, which asks no file system of a mount's root. */
char *mounts_resolve(const char *dir)
{
	char *path = realpath(dir, NULL);

	if (!path && errno == ENOTCONN)
		path = resolve_parent(dir);
	return path;
}

static int ask(const char *dir, struct control_info *info)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	int err;

	if (fd < 0)
		return -errno;
	err = ioctl(fd, CONTROL_IOC_INFO, info) ? -errno : 0;
	close(fd);
	/* What others answer to an ioctl they don't know. */
	if (err == -EINVAL || err == -ENOSYS || err == -EOPNOTSUPP)
		err = -ENOTTY;
	/* Strings came from another program. */
	info->program[sizeof(info->program) - 1] = '\0';
	info->label[sizeof(info->label) - 1] = '\0';
	info->scheme[sizeof(info->scheme) - 1] = '\0';
	info->container[sizeof(info->container) - 1] = '\0';
	return err;
}

/*
 * Without allow_other not even root is let in: become, for good, who is.  The
 * kernel compares all ids.
 */
static int ask_as(const struct mount_entry *e, struct control_info *info)
{
	if (setgroups(0, NULL) || setresgid(e->group, e->group, e->group) ||
	    setresuid(e->user, e->user, e->user))
		return -EACCES;
	return ask(e->dir, info);
}

struct answer {
	int err;
	struct control_info info;
};

static _Noreturn void ask_and_write(const struct mount_entry *e, int fd)
{
	struct answer a = { 0 };

	a.err = ask(e->dir, &a.info);
	if (a.err == -EACCES && geteuid() == 0 && e->user != 0)
		a.err = ask_as(e, &a.info);
	_exit(write(fd, &a, sizeof(a)) != (ssize_t)sizeof(a));
}

/*
 * The pipe holds a whole answer: PIPE_BUF is 4096, an answer little more, a
 * pipe's capacity 64 KiB.
 */
static int read_answer(int fd, struct answer *a)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t used = 0;

	while (used < sizeof(*a)) {
		ssize_t nr;

		if (poll(&p, 1, MOUNTS_ANSWER_MS) <= 0)
			return -ETIMEDOUT;
		nr = read(fd, (char *)a + used, sizeof(*a) - used);
		if (nr <= 0)
			return -EIO;
		used += (size_t)nr;
	}
	return a->err;
}

int mounts_ask(const struct mount_entry *e, struct control_info *info)
{
	struct answer a = { 0 };
	int fd[2], err;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close(fd[0]);
		close(fd[1]);
		return err;
	}
	if (!pid)
		ask_and_write(e, fd[1]);
	close(fd[1]);
	err = read_answer(fd[0], &a);
	close(fd[0]);
	/* One that hangs dies of this, as soon as the kernel lets it. */
	kill(pid, SIGKILL);
	if (err != -ETIMEDOUT)
		waitpid(pid, NULL, 0);
	*info = a.info;
	return err;
}
