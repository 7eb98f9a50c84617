/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The container as an array of 4096-byte blocks behind a volatile cache: what
 * a file, a block device, and (in tests) an emulated disk have in common.  No
 * knowledge of what is in the blocks.
 */
#ifndef FS_CONTAINER_H
#define FS_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/types.h"

struct stats;
struct container;

/*
 * What a kind of container does.  Offsets and lengths in bytes, multiples of
 * BLOCK_BYTES; all functions are thread-safe and return 0 or negative errno.
 * A short transfer is continued inside or becomes an error.
 */
struct container_ops {
	int (*read)(struct container *c, uint64_t offset, size_t len,
		    void *buf);
	int (*write)(struct container *c, uint64_t offset, size_t len,
		     const void *buf);
	/* Make durable all writes and growth that returned before. */
	int (*flush)(struct container *c);
	/*
	 * Back [offset, offset + len) with real space, growing the container
	 * to at least offset + len.  -ENOSPC changes nothing that matters.
	 */
	int (*back)(struct container *c, uint64_t offset, uint64_t len);
	/* Bytes the host could still give to this container. */
	int (*host_free)(struct container *c, uint64_t *bytes);
	/* The lock of container_serve(); NULL where nobody else can come. */
	int (*serve)(struct container *c);
	void (*serve_end)(struct container *c);
	void (*close)(struct container *c);
};

/* The common part, first member of each kind. */
struct container {
	const struct container_ops *ops;
	struct stats *stats; /* may be NULL; set by who opened it */
	uint64_t size_bytes; /* now; atomic, grows by back() */
	bool is_device;	     /* cannot grow */
	bool read_only;
};

enum container_access {
	CONTAINER_READ_ONLY,  /* no byte is changed; shared lock */
	CONTAINER_READ_WRITE, /* exclusive lock */
	CONTAINER_NO_LOCK,    /* read-only, for info on a mounted one */
};

/*
 * Open an existing container file or block device.  Takes the flock
 * of container_lock.h (invariant I6) for the process's life; container_serve()
 * takes the second lock.
 *
 * @wait_seconds  how long to wait for a daemon that is just ending (only the
 *                flock held)
 *
 * Returns 0, -ENOENT, -EACCES, -EISDIR, -EBUSY (in use by another process;
 * *holder_pid, if not NULL, gets its pid or 0), -ENOTBLK (neither a regular
 * file nor a block device), or other errno.
 */
must_check int container_open(struct container **out, const char *path,
			      enum container_access access,
			      unsigned int wait_seconds, int *holder_pid);

enum container_create_mode {
	CONTAINER_NEW_FILE,  /* mode 0600; -EEXIST if it is there */
	CONTAINER_DEVICE,    /* a block device that shows no content */
	CONTAINER_OVERWRITE, /* a device whatever it shows; never a file */
};

/*
 * Make a container of @size_bytes (file: allocated space, a multiple of
 * 4096; device: ignored, its own size is taken) and open it read-write with
 * the exclusive lock.  On copy-on-write hosts NOCOW is asked for.
 *
 * Returns 0, -EEXIST, -ENOTEMPTY (device shows content), -ENOSPC, -EFBIG, or
 * other errno.  A file made here is removed again if anything fails.
 */
must_check int container_create(struct container **out, const char *path,
				enum container_create_mode mode,
				uint64_t size_bytes);

/*
 * From now on this process serves the container: an OFD lock on byte 0, so
 * that others can tell "in use" from "just ending".  container_serve_end()
 * gives it up before the last flush.  Returns 0 or -EBUSY.
 */
must_check int container_serve(struct container *c);
void container_serve_end(struct container *c);

/* Closes descriptors and locks; not a flush. */
void container_close(struct container *c);

/*
 * Reads and writes of whole blocks, timed and counted in c->stats.
 *
 * Returns 0; -EIO, also for blocks beyond the end, as a device would say (the
 * container may have been cut short behind our back); -ENOSPC where the host
 * is full, over quota or at its largest file size; -EROFS for changes of a
 * container opened read-only.  After a failed write the blocks are old, new
 * or a mixture.  back() within a device is nothing, beyond it -ENOSPC.
 *
 * A limit on file sizes (RLIMIT_FSIZE) reaches us as -ENOSPC only if the
 * process ignores SIGXFSZ.
 */
must_check int container_read(struct container *c, block_t first, size_t nr,
			      void *buf);
must_check int container_write(struct container *c, block_t first, size_t nr,
			       const void *buf);
must_check int container_flush(struct container *c);
must_check int container_back(struct container *c, block_t first, uint64_t nr);
must_check int container_host_free(struct container *c, uint64_t *nr_blocks);
uint64_t container_nr_blocks(struct container *c);

/* For kinds of container: the size is now at least @size_bytes. */
void container_grown(struct container *c, uint64_t size_bytes);

#endif
