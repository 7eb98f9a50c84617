/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * tusk mount: open, unlock, mount, and stay as the daemon.
 *
 * The command forks first, since threads and locked memory don't survive it.
 * The child stays in the terminal's session and foreground until the mount
 * answers: it asks for the password, and all that can fail fails with a
 * message on the terminal.  Only then it leaves the session and tells the
 * waiting parent through a pipe; a child that dies before has its exit code
 * passed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "fs/fuse.h"
#include "fs/volume.h"
#include "stats/snapshot.h"
#include "tools/commands.h"
#include "tools/mount_options.h"
#include "tools/mount_point.h"
#include "tools/unlock.h"

struct mount {
	bool foreground;
	bool read_only;
	bool fake;
	bool ignored;
	const char *ignored_text;
	struct mount_options o;
	struct password_source password;

	const char *source; /* the container as it was given */
	char *container;    /* its absolute path */
	char *dir;	    /* resolved */
	int status_fd;	    /* to the waiting parent; -1: none */
	struct tool_container opened;
	struct volume *volume;
	struct stats *stats;
	char uuid[37];
	struct stats_identity identity;
};

static enum tool_exit set_options(void *field, const struct tool_option *o,
				  const char *value)
{
	return mount_options_parse(field, value);
}

/* ---- messages ---- */

/*
 * Where messages go changes in the middle of a process with threads: once the
 * daemon has left its terminal.
 */
static atomic_bool to_syslog;

static void speak(int priority, const char *line)
{
	if (atomic_load(&to_syslog))
		syslog(priority, "%s", line);
	else
		fprintf(stderr, "tusk mount: %s\n", line);
}

/* From the volume and from FUSE, by any thread. */
static void report(void *arg, const char *line)
{
	const struct mount *m = arg;

	tool_warn(m->source, "%s", line);
}

/* ---- the mount answers ---- */

/* sd_notify(3), for units of Type=notify. */
static void notify_service_manager(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	static const char text[] = "READY=1";
	int fd;

	if (len < 2 || len >= sizeof(addr.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL,
		   (const struct sockaddr *)&addr,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) <
	    0)
		tool_warn(NULL, "the service manager can't be told: %s",
			  strerrordesc_np(errno));
	close(fd);
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	openlog("tusk", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	atomic_store(&to_syslog, true);
	if (null < 0)
		return;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

static void tell_parent(struct mount *m)
{
	/* Not any more: the parent's end is not ours from now on. */
	prctl(PR_SET_PDEATHSIG, 0);
	if (write(m->status_fd, "", 1) != 1)
		tool_warn(m->source, "who started the mount is gone");
	close(m->status_fd);
	m->status_fd = -1;
}

static void ready(void *arg)
{
	struct mount *m = arg;

	/* A daemon must not keep some folder busy. */
	if (chdir("/"))
		tool_warn(NULL, "can't change to /");
	if (m->foreground) {
		tool_note(m->source, "mounted on %s", m->dir);
		notify_service_manager();
		return;
	}
	leave_terminal();
	tell_parent(m);
}

/* ---- the steps of the daemon ---- */

/* More workers than this wait for a cipher, not for the disk. */
static unsigned int nr_handles(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus < 2)
		return 4;
	return cpus < 32 ? (unsigned int)cpus * 2 : 64;
}

static enum tool_exit fail_fuse(const struct mount *m,
				const struct fuse_failure *f)
{
	switch (f->trouble) {
	case FUSE_TROUBLE_MOUNT_POINT:
		return tool_fail(TOOL_MOUNT_POINT, m->dir, "%s", f->text);
	case FUSE_TROUBLE_UNAVAILABLE:
		return tool_fail(TOOL_NO_FUSE, NULL, "%s", f->text);
	case FUSE_TROUBLE_INTERRUPTED:
		return tool_fail(TOOL_INTERRUPTED, m->source,
				 "interrupted; nothing is mounted");
	default:
		return tool_fail(TOOL_FAILED, m->source, "%s", f->text);
	}
}

/* What can be told before the password is asked for. */
static enum tool_exit open_checked(struct mount *m, const char *dir)
{
	enum tool_exit code;
	struct fuse_failure f;
	int err;

	code = tool_open_container(&m->opened, m->source,
				   m->read_only ? CONTAINER_READ_ONLY
						: CONTAINER_READ_WRITE,
				   TOOL_WAIT_SECONDS);
	if (code != TOOL_DONE)
		return code;
	err = container_serve(m->opened.c);
	if (err)
		return tool_fail_errno(TOOL_AT_OPEN, m->source, err);
	m->container = realpath(m->source, NULL);
	if (!m->container)
		return tool_fail_errno(TOOL_AT_OPEN, m->source, -errno);
	code = mount_point_check(
		dir, m->o.nonempty ? MOUNT_POINT_WHATEVER : MOUNT_POINT_EMPTY,
		&m->dir);
	if (code != TOOL_DONE)
		return code;
	if (fuse_available(m->o.allow_other, &f))
		return fail_fuse(m, &f);
	return TOOL_DONE;
}

static enum tool_exit unlock(struct mount *m)
{
	const struct password_request request = {
		.what = m->source,
		.kind = PASSWORD_OLD,
		.prefix = "",
	};
	const struct key_set *set;
	enum tool_exit code;

	code = tool_start_cipher(nr_handles());
	if (code == TOOL_DONE)
		code = tool_unlock(&m->opened, &m->password, &request,
				   nr_handles(), NULL);
	if (code != TOOL_DONE)
		return code;
	set = &m->opened.keys.set[m->opened.keys.active];
	if (scheme_self_test(set->scheme))
		return tool_fail(TOOL_FAILED, m->source,
				 "the self-test of %s failed; libgcrypt or "
				 "this machine is faulty, and nothing was "
				 "touched",
				 set->scheme->name);
	return TOOL_DONE;
}

/*
 * A header copy that was damaged, or left older by a change of the password that
 * was cut off, is written anew: else it would keep what it still opens.
 */
static enum tool_exit mend_header(struct mount *m)
{
	struct tool_container *opened = &m->opened;
	int err;

	if (m->read_only || header_copies_agree(&opened->header))
		return TOOL_DONE;
	tool_warn(m->source, "one of its two headers was damaged or older; "
		  "writing it anew");
	err = header_repair(&opened->header, &opened->keys, opened->c);
	return err ? tool_fail_errno(TOOL_AT_OPEN, m->source, err) : TOOL_DONE;
}

static enum tool_exit identify(struct mount *m)
{
	const struct key_set *set = &m->opened.keys.set[m->opened.keys.active];

	uuid_format(m->opened.header.uuid, m->uuid);
	m->identity = (struct stats_identity){
		.version = TUSK_VERSION,
		.uuid = m->uuid,
		.label = m->opened.header.label,
		.scheme = set->scheme->name,
		.sector_bytes = set->sector_bytes,
		.integrity = set->integrity,
		.start_unix_seconds = (uint64_t)time(NULL),
	};
	if (random_bytes(&m->identity.epoch_id, sizeof(m->identity.epoch_id)))
		return tool_fail(TOOL_FAILED, NULL, "no random numbers");
	return TOOL_DONE;
}

static enum tool_exit open_volume(struct mount *m)
{
	const struct volume_options options = {
		.cache_bytes = m->o.cache_bytes,
		.commit_seconds = m->o.commit_seconds ? m->o.commit_seconds : 5,
		.read_only = m->read_only,
		.atime = m->o.atime,
		.stats = m->stats,
		.report = report,
		.report_arg = m,
	};
	int err;

	m->opened.c->stats = m->stats;
	err = volume_open(&m->volume, m->opened.c, &m->opened.header,
			  &m->opened.keys, &options);
	return err ? tool_fail_errno(TOOL_AT_VOLUME, m->source, err)
		   : TOOL_DONE;
}

static enum tool_exit serve(struct mount *m)
{
	struct fuse_params p = {
		.volume = m->volume,
		.stats = m->stats,
		.identity = &m->identity,
		.source = m->source,
		.container_path = m->container,
		.mount_point = m->dir,
		.mount_flags = m->o.flags,
		.allow_other = m->o.allow_other,
		.no_subtype = m->o.no_subtype,
		.no_writeback = m->o.no_writeback,
		.no_xattr = m->o.no_xattr,
		.stats_mode = m->o.stats,
		.override = m->o.override,
		.ready = ready,
		.report = report,
		.arg = m,
	};
	struct fuse_failure f;

	memcpy(p.uuid, m->opened.header.uuid, sizeof(p.uuid));
	/* Whoever is not root may not make others trust a file's bits. */
	if (geteuid() != 0)
		p.mount_flags |= MS_NOSUID | MS_NODEV;
	return fuse_serve(&p, &f) ? fail_fuse(m, &f) : TOOL_DONE;
}

/*
 * From here on others see that we are just ending, and wait.  Whatever the
 * result, the volume is gone.
 */
static enum tool_exit close_volume(struct mount *m, enum tool_exit code)
{
	int err;

	container_serve_end(m->opened.c);
	err = volume_close(m->volume);
	m->volume = NULL;
	if (!err)
		return code;
	return tool_fail(TOOL_FAILED, m->source,
			 "the last changes could not be written: %s; run 'tusk "
			 "check'",
			 strerrordesc_np(-err));
}

/* The whole life of the daemon. */
static enum tool_exit run(struct mount *m, const char *dir)
{
	enum tool_exit code;

	signal(SIGPIPE, SIG_IGN);
	code = open_checked(m, dir);
	if (code == TOOL_DONE)
		code = unlock(m);
	if (code == TOOL_DONE)
		code = identify(m);
	if (code != TOOL_DONE)
		return code;
	m->stats = stats_new();
	if (!m->stats)
		return tool_fail_errno(TOOL_AT_ANY, NULL, -ENOMEM);

	/* Before there are threads, which inherit both. */
	tool_set_sink(speak);
	fuse_block_signals();
	code = open_volume(m);
	if (code == TOOL_DONE) {
		/* Now it is known to be whole. */
		code = mend_header(m);
		if (code == TOOL_DONE)
			code = serve(m);
		code = close_volume(m, code);
	}
	return code;
}

static void clean_up(struct mount *m)
{
	tool_close(&m->opened);
	stats_free(m->stats);
	free(m->container);
	free(m->dir);
	mount_options_destroy(&m->o);
}

/* ---- background ---- */

/*
 * Close what we inherited: a daemon that keeps somebody's pipe open makes its
 * reader wait for ever.
 */
static void close_inherited(const struct mount *m)
{
	int low = m->status_fd, high = low;

	if (m->password.fd.given && m->password.fd.fd > STDERR_FILENO) {
		low = m->password.fd.fd < low ? m->password.fd.fd : low;
		high = m->password.fd.fd > high ? m->password.fd.fd : high;
	}
	if (low > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned int)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned int)low + 1, (unsigned int)high - 1, 0);
	close_range((unsigned int)high + 1, ~0U, 0);
}

static enum tool_exit daemon_main(struct mount *m, const char *dir,
				  pid_t parent)
{
	enum tool_exit code;

	/* Who interrupts the command means us, until we are on our own. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		return TOOL_INTERRUPTED;
	close_inherited(m);
	code = run(m, dir);
	clean_up(m);
	return code;
}

/* A byte: it is mounted.  None: how the child ended tells why not. */
static enum tool_exit wait_for_daemon(const struct mount *m, pid_t child,
				      int fd)
{
	char byte;
	ssize_t nr;
	int status;

	/* The terminal's signals are the child's, which restores the echo. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	do {
		nr = read(fd, &byte, 1);
	} while (nr < 0 && errno == EINTR);
	if (nr == 1)
		return TOOL_DONE;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return tool_fail_errno(TOOL_AT_ANY, m->source, -errno);
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WTERMSIG(status) == SIGINT)
		return TOOL_INTERRUPTED;
	return tool_fail(TOOL_FAILED, m->source,
			 "the daemon died of signal %d before it was ready",
			 WTERMSIG(status));
}

static enum tool_exit run_in_background(struct mount *m, const char *dir)
{
	enum tool_exit code;
	pid_t parent = getpid();
	int fd[2];
	pid_t child;

	if (pipe2(fd, O_CLOEXEC))
		return tool_fail_errno(TOOL_AT_ANY, NULL, -errno);
	child = fork();
	if (child < 0) {
		close(fd[0]);
		close(fd[1]);
		return tool_fail_errno(TOOL_AT_ANY, NULL, -errno);
	}
	if (!child) {
		m->status_fd = fd[1];
		_exit(daemon_main(m, dir, parent));
	}
	close(fd[1]);
	code = wait_for_daemon(m, child, fd[0]);
	close(fd[0]);
	return code;
}

/* ---- the command ---- */

/* passwordfile= is --password-file; both are one too many. */
static enum tool_exit choose_password(struct mount *m)
{
	const struct password_request request = {
		.what = m->source,
		.kind = PASSWORD_OLD,
		.prefix = "",
	};

	if (m->o.password_file && (m->password.file || m->password.fd.given))
		return tool_fail(TOOL_USAGE, NULL,
				 "-o passwordfile= and another source of the "
				 "password exclude each other");
	if (m->o.password_file)
		m->password.file = m->o.password_file;
	return password_source_check(&m->password, &request);
}

static enum tool_exit mount_run(void *state, char **args)
{
	struct mount *m = state;
	enum tool_exit code;

	m->source = args[0];
	m->status_fd = -1;
	if (m->read_only)
		m->o.flags |= MS_RDONLY;
	m->read_only = m->o.flags & MS_RDONLY;
	code = choose_password(m);
	if (code == TOOL_DONE && !m->fake)
		code = m->foreground ? run(m, args[1])
				     : run_in_background(m, args[1]);
	clean_up(m);
	return code;
}

static const struct tool_option mount_command_options[] = {
	{ "foreground", 'f', NULL, offsetof(struct mount, foreground),
	  option_flag,
	  "Stay in the foreground; messages go to stderr and not to syslog." },
	{ "options", 'o', "WORDS", offsetof(struct mount, o), set_options,
	  "Mount options, separated by commas; see below." },
	{ "ro", 'r', NULL, offsetof(struct mount, read_only), option_flag,
	  "Change nothing in the container; as -o ro." },
	PASSWORD_OPTIONS(offsetof(struct mount, password), "", "the password"),
	{ 0 },
};

static void mount_more_help(FILE *out)
{
	fputs("\nMount options (-o):\n", out);
	mount_options_help(out);
	command_wrap(out,
		     "Those of mount(8) are obeyed (ro, nosuid, nodev, noexec, "
		     "noatime and so on) or have no meaning here and are "
		     "ignored (auto, nofail, _netdev, x-*); any other word is "
		     "refused.",
		     2, 0);
}

static const char *const mount_text[] = {
	"Ask for CONTAINER's password and mount it on the folder DIR. The "
	"command returns when DIR can be used; its daemon stays in the "
	"background until DIR is unmounted, and writes to syslog.",
	"Without -o allow_other only you can enter DIR, not even root. Reading "
	"DIR/stats, DIR/stats.json or DIR/stats.prom (for Prometheus) shows what "
	"the mount is doing.",
	"SIGTERM, SIGINT and SIGHUP end the daemon in order: all is written, "
	"and DIR unmounted.",
	NULL,
};

static const char *const mount_examples[] = {
	"tusk mount ~/vault.tusk ~/Private",
	"tusk mount --ro -o stats=off /dev/sdb1 /mnt",
	"tusk mount -o allow_other,passwordfile=/root/pw /srv/v.tusk /srv/v",
	NULL,
};

const struct tool_command mount_command = {
	.name = "mount",
	.args = "CONTAINER DIR",
	.min_args = 2,
	.max_args = 2,
	.summary = "mount a container on a folder",
	.text = mount_text,
	.examples = mount_examples,
	.options = mount_command_options,
	.more_help = mount_more_help,
	.state_bytes = sizeof(struct mount),
	.run = mount_run,
};

/* How mount(8) calls the helper of a file system's type. */
static const struct tool_option helper_options[] = {
	{ "options", 'o', "WORDS", offsetof(struct mount, o), set_options,
	  "Mount options, separated by commas." },
	{ "read-only", 'r', NULL, offsetof(struct mount, read_only),
	  option_flag, "As -o ro." },
	{ "read-write", 'w', NULL, offsetof(struct mount, ignored), option_flag,
	  "Ignored." },
	{ "fake", 'f', NULL, offsetof(struct mount, fake), option_flag,
	  "Check the options and mount nothing." },
	{ "sloppy", 's', NULL, offsetof(struct mount, ignored), option_flag,
	  "Ignored." },
	{ "no-mtab", 'n', NULL, offsetof(struct mount, ignored), option_flag,
	  "Ignored." },
	{ "verbose", 'v', NULL, offsetof(struct mount, ignored), option_flag,
	  "Ignored." },
	{ "namespace", 'N', "NS", offsetof(struct mount, ignored_text),
	  option_string, "Ignored." },
	{ "types", 't', "TYPE", offsetof(struct mount, ignored_text),
	  option_string, "Ignored." },
	{ 0 },
};

static const char *const helper_text[] = {
	"Mount a container for mount(8) and /etc/fstab. People use 'tusk "
	"mount'.",
	NULL,
};

static const char *const helper_examples[] = {
	"mount -t fuse.tuskfs /srv/v.tusk /srv/v -o passwordfile=/root/pw",
	NULL,
};

const struct tool_command mount_helper_command = {
	.name = "mount",
	.args = "CONTAINER DIR",
	.min_args = 2,
	.max_args = 2,
	.summary = "mount a container, as mount(8) calls it",
	.text = helper_text,
	.examples = helper_examples,
	.options = helper_options,
	.state_bytes = sizeof(struct mount),
	.run = mount_run,
};
