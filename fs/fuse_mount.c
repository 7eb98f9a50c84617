/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * mount(2) where it is permitted, else fusermount3(1): it is set-user-id root,
 * checks what an ordinary user may do, opens the device, mounts, and sends the
 * descriptor through the socket whose number stands in _FUSE_COMMFD.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/fuse_mount.h"

#define DEVICE "/dev/fuse"
#define HELPER "fusermount3"

extern char **environ;

__attribute__((format(printf, 4, 5))) static int fail(struct fuse_failure *f,
						      int err,
						      enum fuse_trouble trouble,
						      const char *format, ...)
{
	va_list args;

	f->trouble = trouble;
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
	return err;
}

/* ---- the helper ---- */

static const struct {
	unsigned long flag;
	const char *set, *clear;
} flag_words[] = {
	{ MS_RDONLY, "ro", "rw" },	  { MS_NOSUID, "nosuid", NULL },
	{ MS_NODEV, "nodev", NULL },	  { MS_NOEXEC, "noexec", NULL },
	{ MS_SYNCHRONOUS, "sync", NULL }, { MS_DIRSYNC, "dirsync", NULL },
	{ MS_NOATIME, "noatime", NULL },
};

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == ',' || *text == '\\')
			putc('\\', out);
		putc(*text, out);
	}
}

char *mount_helper_options(const struct fuse_params *p)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("default_permissions", out);
	for (size_t i = 0; i < sizeof(flag_words) / sizeof(flag_words[0]);
	     i++) {
		const char *word = p->mount_flags & flag_words[i].flag
					   ? flag_words[i].set
					   : flag_words[i].clear;

		if (word)
			fprintf(out, ",%s", word);
	}
	if (p->allow_other)
		fputs(",allow_other", out);
	if (!p->no_subtype)
		fputs(",subtype=" FUSE_SUBTYPE, out);
	fputs(",fsname=", out);
	put_escaped(out, p->source);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* A copy of the environment with one variable more; free() it. */
static char **environ_with(char *variable)
{
	size_t nr = 0;
	char **env;

	while (environ[nr])
		nr++;
	env = calloc(nr + 2, sizeof(*env));
	if (!env)
		return NULL;
	env[0] = variable;
	memcpy(env + 1, environ, nr * sizeof(*env));
	return env;
}

/*
 * Run the helper; what it says on stderr goes to @said.  @keep is a descriptor
 * it inherits, or -1.  Returns its exit status or negative errno.
 */
static int run_helper(char *const *argv, char **env, int keep, char *said,
		      size_t size)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int pipe_fd[2], status, err;
	size_t used = 0;
	ssize_t nr;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipe_fd[1], STDERR_FILENO);
	if (keep >= 0) /* onto itself: clears close-on-exec */
		posix_spawn_file_actions_adddup2(&actions, keep, keep);
	/* Not the signals that we block. */
	posix_spawnattr_init(&attr);
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	err = posix_spawnp(&pid, HELPER, &actions, &attr, argv, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	close(pipe_fd[1]);
	if (err) {
		close(pipe_fd[0]);
		return -err;
	}
	while (used < size - 1) {
		nr = read(pipe_fd[0], said + used, size - 1 - used);
		if (nr == 0 || (nr < 0 && errno != EINTR))
			break;
		used += nr > 0 ? (size_t)nr : 0;
	}
	said[used] = '\0';
	close(pipe_fd[0]);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

/* The descriptor that the helper sends, or -1. */
static int receive_fd(int sock)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	ssize_t nr;
	int fd;

	do {
		nr = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (nr < 0 && errno == EINTR);
	if (nr <= 0)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int refuse_allow_other(struct fuse_failure *f)
{
	return fail(f, -EPERM, FUSE_TROUBLE_UNAVAILABLE,
		    "option allow_other is not permitted; the administrator "
		    "has to put user_allow_other into /etc/fuse.conf");
}

static int refuse_no_helper(struct fuse_failure *f)
{
	return fail(f, -ENOENT, FUSE_TROUBLE_UNAVAILABLE,
		    HELPER " was not found; install the package fuse3");
}

/* Turn what the helper said, often several lines, into one of ours. */
static int explain_helper(const struct fuse_params *p, char *said,
			  struct fuse_failure *f)
{
	char *line = said;

	if (p->allow_other && strstr(said, "user_allow_other"))
		return refuse_allow_other(f);
	if (!strncmp(line, HELPER ": ", strlen(HELPER ": ")))
		line += strlen(HELPER ": ");
	line[strcspn(line, "\n")] = '\0';
	if (!*line)
		return fail(f, -EIO, FUSE_TROUBLE_UNAVAILABLE,
			    HELPER " failed without a word");
	if (strstr(line, "mountpoint") || strstr(line, "mounting over"))
		return fail(f, -EPERM, FUSE_TROUBLE_MOUNT_POINT, "%.300s",
			    line);
	return fail(f, -EIO, FUSE_TROUBLE_UNAVAILABLE, HELPER ": %.300s", line);
}

static int attach_by_helper(const struct fuse_params *p, int *fd,
			    struct fuse_failure *f)
{
	char variable[32], said[1024] = "";
	char *options = mount_helper_options(p);
	char *argv[] = { (char *)HELPER, (char *)"-o",		 options,
			 (char *)"--",	 (char *)p->mount_point, NULL };
	char **env = environ_with(variable);
	int sock[2], err;

	if (!options || !env) {
		err = fail(f, -ENOMEM, FUSE_TROUBLE_OTHER, "out of memory");
		goto free_strings;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock)) {
		err = fail(f, -errno, FUSE_TROUBLE_OTHER, "no socket: %s",
			   strerror(errno));
		goto free_strings;
	}
	snprintf(variable, sizeof(variable), "_FUSE_COMMFD=%d", sock[0]);
	err = run_helper(argv, env, sock[0], said, sizeof(said));
	close(sock[0]);
	*fd = err ? -1 : receive_fd(sock[1]);
	close(sock[1]);
	if (err == -ENOENT)
		err = refuse_no_helper(f);
	else if (err < 0)
		fail(f, err, FUSE_TROUBLE_UNAVAILABLE, HELPER ": %s",
		     strerror(-err));
	else if (*fd < 0)
		err = explain_helper(p, said, f);

free_strings:
	free(env);
	free(options);
	return err;
}

/* ---- ourselves ---- */

static int explain_device(int err, struct fuse_failure *f)
{
	switch (err) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return fail(f, -err, FUSE_TROUBLE_UNAVAILABLE,
			    "the kernel offers no FUSE (" DEVICE
			    ": %s); try: modprobe fuse",
			    strerror(err));
	default:
		return fail(f, -err, FUSE_TROUBLE_UNAVAILABLE,
			    DEVICE " can't be opened: %s; it should have "
				   "mode 0666",
			    strerror(err));
	}
}

static int explain_mount(int err, struct fuse_failure *f)
{
	switch (err) {
	case ENODEV:
		return explain_device(err, f);
	case EBUSY:
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EACCES:
		return fail(f, -err, FUSE_TROUBLE_MOUNT_POINT,
			    "can't mount there: %s", strerror(err));
	default:
		return fail(f, -err, FUSE_TROUBLE_OTHER, "mount failed: %s",
			    strerror(err));
	}
}

/* -EPERM: only the helper can. */
static int attach_ourselves(const struct fuse_params *p, int *fd,
			    struct fuse_failure *f)
{
	char data[160];
	int err;

	*fd = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return explain_device(errno, f);
	snprintf(data, sizeof(data),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,"
		 "default_permissions%s",
		 *fd, getuid(), getgid(), p->allow_other ? ",allow_other" : "");
	err = mount(p->source, p->mount_point,
		    p->no_subtype ? "fuse" : "fuse." FUSE_SUBTYPE,
		    p->mount_flags, data)
		      ? errno
		      : 0;
	if (!err)
		return 0;
	close(*fd);
	*fd = -1;
	return err == EPERM ? -EPERM : explain_mount(err, f);
}

int mount_attach(const struct fuse_params *p, int *fd, struct fuse_failure *f)
{
	int err;

	*f = (struct fuse_failure){ 0 };
	*fd = -1;
	err = attach_ourselves(p, fd, f);
	if (err == -EPERM && f->trouble == FUSE_TROUBLE_NONE)
		err = attach_by_helper(p, fd, f);
	return err;
}

/* As posix_spawnp() will look for it. */
static bool find_helper(void)
{
	const char *path = getenv("PATH"), *end;
	char name[4096];

	if (!path)
		path = "/bin:/usr/bin";
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		snprintf(name, sizeof(name), "%.*s/" HELPER, (int)(end - path),
			 path);
		if (!access(name, X_OK))
			return true;
		if (!*end)
			return false;
	}
}

/* Where the file can't be read the helper will judge. */
static bool allow_other_permitted(void)
{
	FILE *in = fopen("/etc/fuse.conf", "re");
	char line[256];
	bool found = false;

	if (!in)
		return errno != ENOENT;
	while (!found && fgets(line, sizeof(line), in)) {
		const char *word = line + strspn(line, " \t");

		found = !strncmp(word, "user_allow_other", 16) &&
			!word[16 + strspn(word + 16, " \t\n")];
	}
	fclose(in);
	return found;
}

int fuse_available(bool allow_other, struct fuse_failure *f)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	*f = (struct fuse_failure){ 0 };
	if (fd < 0)
		return explain_device(errno, f);
	close(fd);
	if (geteuid() == 0)
		return 0;
	if (!find_helper())
		return refuse_no_helper(f);
	if (allow_other && !allow_other_permitted())
		return refuse_allow_other(f);
	return 0;
}

int fuse_unmount(const char *dir, enum fuse_unmount_how how)
{
	char said[512];
	char *lazy[] = {
		(char *)HELPER, (char *)"-u", (char *)"-q", (char *)"-z",
		(char *)"--",	(char *)dir,  NULL
	};
	char *plain[] = { (char *)HELPER, (char *)"-u", (char *)"--",
			  (char *)dir, NULL };
	int flags = UMOUNT_NOFOLLOW;
	int err;

	if (how == FUSE_UNMOUNT_LAZY)
		flags |= MNT_DETACH;
	else if (how == FUSE_UNMOUNT_FORCE)
		flags |= MNT_FORCE;
	if (!umount2(dir, flags))
		return 0;
	if (errno != EPERM)
		return -errno;
	if (how == FUSE_UNMOUNT_FORCE)
		return -EPERM;
	err = run_helper(how == FUSE_UNMOUNT_LAZY ? lazy : plain, environ, -1,
			 said, sizeof(said));
	if (err <= 0)
		return err;
	if (strstr(said, strerror(EBUSY)))
		return -EBUSY;
	return strstr(said, "not found") ? -EINVAL : -EPERM;
}
