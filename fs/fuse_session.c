/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A mount from its start to its end.  Two threads of ours: one runs libfuse's
 * loop (which starts workers as they are needed), the caller's supervises.
 *
 * libfuse's own signal handlers end the loop while the kernel still holds dirty
 * pages of open files, which are then lost.  Here a signal is read by the
 * supervisor while the workers go on serving: it has the kernel write all it
 * holds, makes it durable, and unmounts; that, and not the signal, ends the
 * loop.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fs/fuse_fs.h"
#include "fs/fuse_mount.h"
#include "stats/snapshot.h"

/*
 * Receivers that may wait for the disk at one time: the queue depth.  Idle ones
 * beyond the number of processors only cost switches.
 */
#define MAX_THREADS 64

#define READ_AHEAD_KIB "1024"

struct session {
	const struct fuse_params *p;
	struct fuse_fs fs;
	struct fuse_session *se;
	int device_fd; /* libfuse's once attached */
	int signal_fd;
	int done_fd; /* eventfd: the loop has ended */
	pthread_t loop;
	dev_t dev;    /* of the mount; 0: unknown yet */
	int loop_err; /* set before done_fd tells */
};

/*
 * libfuse's messages have no argument to tell whose they are: one mount per
 * process.  Set before its threads start.
 */
static const struct fuse_params *log_params;

__attribute__((format(printf, 2, 0))) static void
forward_log(enum fuse_log_level level, const char *format, va_list args)
{
	char line[256];

	if (level > FUSE_LOG_WARNING)
		return;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	log_params->report(log_params->arg, line);
}

static void say(const struct session *s, const char *line)
{
	s->p->report(s->p->arg, line);
}

/* ---- the virtual files' contents ---- */

static char *(*const renderer[VIRTUAL_NR])(const struct stats_snapshot *) = {
	[VIRTUAL_STATS] = stats_render_text,
	[VIRTUAL_STATS_JSON] = stats_render_json,
	[VIRTUAL_STATS_PROM] = stats_render_prometheus,
};

static char *render(void *arg, enum virtual_kind kind)
{
	struct fuse_fs *fs = arg;
	struct stats_snapshot *snap = calloc(1, sizeof(*snap));
	char *text;

	if (!snap)
		return NULL;
	stats_snapshot_take(fs->p->stats, snap);
	snap->identity = *fs->p->identity;
	volume_gauges(fs->volume, snap->gauge);
	snap->gauge[STATS_GAUGE_known_inodes] = lookup_nr(fs->lookups);
	text = renderer[kind](snap);
	free(snap);
	return text;
}

/* The process that @thread is of; the thread itself if that can't be told. */
static pid_t process_of(pid_t thread)
{
	char path[48], line[128];
	pid_t process = thread;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	in = fopen(path, "re");
	if (!in)
		return thread;
	while (fgets(line, sizeof(line), in)) {
		if (!strncmp(line, "Tgid:", 5)) {
			process = (pid_t)strtol(line + 5, NULL, 10);
			break;
		}
	}
	fclose(in);
	return process;
}

/* ---- set up and tear down ---- */

static const int end_signals[] = { SIGTERM, SIGINT, SIGHUP };

static void end_signal_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(end_signals) / sizeof(end_signals[0]);
	     i++)
		sigaddset(set, end_signals[i]);
}

void fuse_block_signals(void)
{
	sigset_t set;

	end_signal_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int fs_start(struct session *s)
{
	struct virtual_params vp = {
		.render = render,
		.arg = &s->fs,
		.now = stats_now,
		.process_of = process_of,
	};
	int err;

	s->fs.p = s->p;
	s->fs.volume = s->p->volume;
	s->fs.init_fd = -1;
	err = pthread_key_create(&s->fs.buffer_key, fs_buffer_free);
	if (err)
		return -err;
	s->fs.init_fd = eventfd(0, EFD_CLOEXEC);
	s->fs.lookups = lookup_new();
	s->fs.virtuals = virtual_new(&vp);
	if (s->fs.init_fd < 0 || !s->fs.lookups || !s->fs.virtuals)
		return -ENOMEM;
	return 0;
}

static void fs_stop(struct session *s)
{
	virtual_free(s->fs.virtuals);
	lookup_free(s->fs.lookups);
	if (s->fs.init_fd >= 0)
		close(s->fs.init_fd);
	pthread_key_delete(s->fs.buffer_key);
}

static int session_start(struct session *s)
{
	char *argv[] = { (char *)"tusk", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	sigset_t set;

	end_signal_set(&set);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	s->done_fd = eventfd(0, EFD_CLOEXEC);
	if (s->signal_fd < 0 || s->done_fd < 0)
		return -errno;
	log_params = s->p;
	fuse_set_log_func(forward_log);
	s->se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), &s->fs);
	fuse_opt_free_args(&args);
	s->fs.session = s->se;
	return s->se ? 0 : -ENOMEM;
}

static void session_stop(struct session *s)
{
	notifier_free(s->fs.notifier);
	if (s->se)
		fuse_session_destroy(s->se);
	else if (s->device_fd >= 0)
		close(s->device_fd);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
	if (s->done_fd >= 0)
		close(s->done_fd);
}

/* Mount, and give the device to libfuse, which closes it in the end. */
static int attach(struct session *s, struct fuse_failure *f)
{
	char name[32];
	int err;

	err = mount_attach(s->p, &s->device_fd, f);
	if (err)
		return err;
	snprintf(name, sizeof(name), "/dev/fd/%d", s->device_fd);
	if (!fuse_session_mount(s->se, name))
		return 0;
	if (fuse_unmount(s->p->mount_point, FUSE_UNMOUNT_LAZY))
		say(s, "the mount that failed can't be removed");
	close(s->device_fd);
	s->device_fd = -1;
	f->trouble = FUSE_TROUBLE_OTHER;
	snprintf(f->text, sizeof(f->text), "libfuse refused the mount");
	return -EIO;
}

/* ---- the loop ---- */

/* Wakes the loop's thread from its wait, so that it sees it shall end. */
static void wake(int sig)
{
}

static int run_loop(struct session *s)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned int idle = cpus > 2 ? (unsigned int)cpus : 2;
	int err;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, 0);
	fuse_loop_cfg_set_max_threads(config, MAX_THREADS);
	fuse_loop_cfg_set_idle_threads(config,
				       idle < MAX_THREADS ? idle : MAX_THREADS);
	err = fuse_session_loop_mt(s->se, config);
	fuse_loop_cfg_destroy(config);
	return err < 0 ? err : 0;
}

static void *loop_main(void *arg)
{
	struct session *s = arg;

	s->loop_err = run_loop(s);
	eventfd_write(s->done_fd, 1);
	return NULL;
}

static int loop_start(struct session *s)
{
	struct sigaction act = { .sa_handler = wake };
	int err;

	/* Without SA_RESTART: it shall interrupt. */
	sigemptyset(&act.sa_mask);
	if (sigaction(SIGUSR1, &act, NULL))
		return -errno;
	err = notifier_new(&s->fs.notifier, &s->fs);
	if (err)
		return err;
	return -pthread_create(&s->loop, NULL, loop_main, s);
}

static bool loop_ended(const struct session *s, int timeout_ms)
{
	struct pollfd fd = { .fd = s->done_fd, .events = POLLIN };

	return poll(&fd, 1, timeout_ms) > 0;
}

/*
 * End the loop though the connection still stands.  Workers finish what they
 * are doing.  libfuse waits in sem_wait(), which a signal interrupts; one
 * that comes just before it would be lost, so it is repeated.
 */
static void loop_stop(struct session *s)
{
	fuse_session_exit(s->se);
	do {
		pthread_kill(s->loop, SIGUSR1);
	} while (!loop_ended(s, 20));
}

/* ---- the end by a signal ---- */

/* A descriptor of our mount's root, or -1. */
static int open_root(const struct session *s)
{
	struct stat st;
	int fd;

	fd = open(s->p->mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || st.st_dev != s->dev) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Have the kernel hand over its dirty pages, and make all durable.  A root
 * folder that its owner may not read can't be opened by us either; then
 * everything is asked for.
 */
static void sync_mount(struct session *s, int root)
{
	int err;

	if (root < 0)
		sync();
	else if (syncfs(root))
		say(s, "some of the last writes failed and are lost");
	err = volume_sync(s->p->volume);
	if (err)
		say(s, "the last changes could not be made durable");
}

/* Whether our mount is what is on top of the mount point. */
static bool is_on_top(const struct session *s)
{
	struct statx st;

	/* DONT_SYNC: no request to ourselves. */
	return !statx(AT_FDCWD, s->p->mount_point,
		      AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == s->dev;
}

/*
 * Somebody uses the mount.  It leaves the tree of folders, so that nobody new
 * comes; what was written meanwhile is saved; then those who still use it get
 * ENOTCONN.
 */
static void detach(struct session *s)
{
	int root = open_root(s);

	if (is_on_top(s) && fuse_unmount(s->p->mount_point, FUSE_UNMOUNT_LAZY))
		say(s, "the mount can't be detached");
	sync_mount(s, root);
	if (root >= 0)
		close(root);
	say(s, "the mount was in use when it was ended; programs with open "
	       "files will see errors");
}

/*
 * After a plain unmount the kernel closes the connection at once, and the loop
 * ends by itself; unless a copy of the mount lives on somewhere (another mount
 * name space, a bind mount).
 */
static void end_by_signal(struct session *s)
{
	int root = open_root(s);

	sync_mount(s, root);
	if (root >= 0)
		close(root);
	if (!is_on_top(s) || fuse_unmount(s->p->mount_point, FUSE_UNMOUNT))
		detach(s);
	else if (!loop_ended(s, 2000))
		sync_mount(s, -1);
	if (!loop_ended(s, 0))
		loop_stop(s);
}

/* ---- the supervisor ---- */

/* As root: the kernel only ever lowers what INIT asks for. */
static void raise_read_ahead(const struct session *s)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb",
		 major(s->dev), minor(s->dev));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, READ_AHEAD_KIB, strlen(READ_AHEAD_KIB)) < 0)
		say(s, "read-ahead stays at the kernel's default");
	close(fd);
}

/*
 * INIT has come.  Two requests through the kernel prove that the mount
 * answers; then whoever waits for the mount may know.
 */
static int prove(struct session *s)
{
	struct statfs sfs;
	struct stat st;

	if (stat(s->p->mount_point, &st) || statfs(s->p->mount_point, &sfs))
		return -errno;
	s->dev = st.st_dev;
	raise_read_ahead(s);
	return 0;
}

/* Wait for what happens first. */
enum event {
	EVENT_INIT,
	EVENT_SIGNAL,
	EVENT_DONE
};

static enum event wait_event(struct session *s, bool init_too)
{
	struct pollfd fds[] = {
		{ .fd = s->done_fd, .events = POLLIN },
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = init_too ? s->fs.init_fd : -1, .events = POLLIN },
	};
	struct signalfd_siginfo info;

	for (;;) {
		int nr = poll(fds, 3, -1);

		if (nr < 0)
			continue;
		if (fds[0].revents)
			return EVENT_DONE;
		if (fds[1].revents &&
		    read(s->signal_fd, &info, sizeof(info)) > 0)
			return EVENT_SIGNAL;
		if (fds[2].revents)
			return EVENT_INIT;
	}
}

/* No mount after all: take it away again. */
static int give_up(struct session *s, int err, enum fuse_trouble trouble,
		   const char *text, struct fuse_failure *f)
{
	if (fuse_unmount(s->p->mount_point, FUSE_UNMOUNT_LAZY))
		say(s, "the mount that failed can't be removed");
	if (!loop_ended(s, 0))
		loop_stop(s);
	f->trouble = trouble;
	snprintf(f->text, sizeof(f->text), "%s", text);
	return err;
}

static int supervise(struct session *s, struct fuse_failure *f)
{
	switch (wait_event(s, true)) {
	case EVENT_SIGNAL:
		return give_up(s, -EINTR, FUSE_TROUBLE_INTERRUPTED,
			       "interrupted", f);
	case EVENT_DONE:
		return give_up(s, s->loop_err ? s->loop_err : -EIO,
			       FUSE_TROUBLE_UNAVAILABLE,
			       "the kernel's FUSE and libfuse do not "
			       "understand each other",
			       f);
	case EVENT_INIT:
		break;
	}
	if (prove(s))
		return give_up(s, -EIO, FUSE_TROUBLE_OTHER,
			       "the mount does not answer", f);
	if (s->p->ready)
		s->p->ready(s->p->arg);
	if (wait_event(s, false) == EVENT_SIGNAL)
		end_by_signal(s);
	return 0;
}

static int serve(struct session *s, struct fuse_failure *f)
{
	int err;

	err = fs_start(s);
	if (!err)
		err = session_start(s);
	if (err) {
		f->trouble = FUSE_TROUBLE_OTHER;
		snprintf(f->text, sizeof(f->text), "can't start: %s",
			 strerror(-err));
		return err;
	}
	err = attach(s, f);
	if (err)
		return err;
	err = loop_start(s);
	if (err) {
		f->trouble = FUSE_TROUBLE_OTHER;
		snprintf(f->text, sizeof(f->text), "can't start: %s",
			 strerror(-err));
		if (fuse_unmount(s->p->mount_point, FUSE_UNMOUNT_LAZY))
			say(s, "the mount that failed can't be removed");
		return err;
	}
	err = supervise(s, f);
	pthread_join(s->loop, NULL);
	if (!err && s->loop_err)
		say(s, "the connection to the kernel broke");
	return err;
}

int fuse_serve(const struct fuse_params *p, struct fuse_failure *f)
{
	struct session s = {
		.p = p,
		.device_fd = -1,
		.signal_fd = -1,
		.done_fd = -1,
	};
	int err;

	assert(p->volume && p->identity && p->report);
	assert(p->mount_point[0] == '/');
	*f = (struct fuse_failure){ 0 };
	err = serve(&s, f);
	session_stop(&s);
	fs_stop(&s);
	return err;
}
