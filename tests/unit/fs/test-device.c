/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Containers on block devices: loop devices, which only root can make.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include "fs/container.h"
#include "support.h"

static char folder[64], backing[80], device[32];
static int loop_fd = -1;

/* Attach a file of 32 MiB of zeros, or leave loop_fd at -1. */
static void attach(void)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file, nr;

	make_folder(folder);
	snprintf(backing, sizeof(backing), "%s/disk", folder);
	if (control < 0)
		return;
	file = open(backing, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	nr = ioctl(control, LOOP_CTL_GET_FREE);
	if (file >= 0 && nr >= 0 && !ftruncate(file, DISK_BYTES)) {
		snprintf(device, sizeof(device), "/dev/loop%d", nr);
		loop_fd = open(device, O_RDWR | O_CLOEXEC);
		if (loop_fd >= 0 && ioctl(loop_fd, LOOP_SET_FD, file)) {
			close(loop_fd);
			loop_fd = -1;
		}
	}
	close(file);
	close(control);
}

static void detach(void)
{
	if (loop_fd >= 0) {
		ioctl(loop_fd, LOOP_CLR_FD, 0);
		close(loop_fd);
	}
	remove_folder(folder);
}

TestSuite(device, .init = attach, .fini = detach);

static void need_device(void)
{
	if (loop_fd < 0)
		cr_skip_test("no loop device can be made here");
}

static int create(enum container_create_mode mode)
{
	struct container *c;
	int err = container_create(&c, device, mode, MIB);

	container_close(c);
	return err;
}

Test(device, has_its_own_size_and_keeps_it)
{
	struct container *c;
	uint64_t nr = 1;

	need_device();
	cr_assert_eq(container_create(&c, device, CONTAINER_DEVICE, 0), 0);
	cr_assert(c->is_device);
	cr_assert_eq(container_nr_blocks(c), DISK_BYTES / BLOCK_BYTES);
	cr_assert_eq(container_host_free(c, &nr), 0);
	cr_assert_eq(nr, 0);
	cr_assert_eq(container_back(c, 0, 8192), 0);
	cr_assert_eq(container_back(c, 8191, 2), -ENOSPC);
	cr_assert_eq(container_nr_blocks(c), 8192);
	container_close(c);
}

Test(device, is_written_and_read)
{
	uint8_t in[BLOCK_BYTES], out[BLOCK_BYTES];
	struct container *c;

	need_device();
	memset(in, 0x5a, sizeof(in));
	cr_assert_eq(container_create(&c, device, CONTAINER_DEVICE, 0), 0);
	cr_assert_eq(container_write(c, 8191, 1, in), 0);
	cr_assert_eq(container_flush(c), 0);
	container_close(c);

	cr_assert_eq(container_open(&c, device, CONTAINER_READ_ONLY, 0, NULL),
		     0);
	cr_assert_eq(container_read(c, 8191, 1, out), 0);
	cr_assert_arr_eq(in, out, sizeof(in));
	container_close(c);
}

static void write_at(uint64_t offset, uint8_t byte)
{
	cr_assert_eq(pwrite(loop_fd, &byte, 1, (off_t)offset), 1);
}

Test(device, with_content_is_not_taken)
{
	static const uint64_t places[] = {
		0, 1080, MIB - 1, 16 * MIB, DISK_BYTES - 65536, DISK_BYTES - 1,
	};

	need_device();
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		write_at(places[i], 1);
		cr_assert_eq(create(CONTAINER_DEVICE), -ENOTEMPTY, "at %lu",
			     (unsigned long)places[i]);
		cr_assert_eq(create(CONTAINER_OVERWRITE), 0);
		write_at(places[i], 0);
	}
	cr_assert_eq(create(CONTAINER_DEVICE), 0);
}

Test(device, is_an_existing_file_to_who_makes_a_file)
{
	need_device();
	cr_assert_eq(create(CONTAINER_NEW_FILE), -EEXIST);
}

Test(device, is_ours_alone)
{
	struct container *c, *d;
	int fd;

	need_device();
	cr_assert_eq(container_create(&c, device, CONTAINER_DEVICE, 0), 0);
	cr_assert_eq(container_open(&d, device, CONTAINER_READ_WRITE, 0, NULL),
		     -EBUSY);
	cr_assert_eq(container_open(&d, device, CONTAINER_READ_ONLY, 0, NULL),
		     -EBUSY);
	cr_assert_eq(open(device, O_RDONLY | O_EXCL), -1);
	cr_assert_eq(errno, EBUSY);
	container_close(c);

	/* As a mounted file system has it. */
	fd = open(device, O_RDONLY | O_EXCL);
	cr_assert_geq(fd, 0);
	cr_assert_eq(container_open(&d, device, CONTAINER_READ_WRITE, 0, NULL),
		     -EBUSY);
	close(fd);
}
