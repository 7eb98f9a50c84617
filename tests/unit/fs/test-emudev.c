/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The emulated disk itself: the crash tests are worth what it is worth.
 */
#include <criterion/criterion.h>
#include <sys/stat.h>

#include "support.h"

static void write_byte(struct container *c, block_t block, uint8_t byte)
{
	uint8_t buf[BLOCK_BYTES];

	memset(buf, byte, sizeof(buf));
	cr_assert_eq(container_write(c, block, 1, buf), 0);
}

/* First byte of a block, or -1 if it cannot be read. */
static int byte_at(struct emudev *d, block_t block)
{
	uint8_t buf[BLOCK_BYTES];

	if (container_read(emudev_container(d), block, 1, buf))
		return -1;
	return buf[0];
}

static int byte_after(struct emudev *d, uint64_t events,
		      enum emudev_policy policy, uint64_t seed, block_t block)
{
	auto_emudev struct emudev *i = emudev_image_at(d, events, policy, seed);

	return byte_at(i, block);
}

Test(emudev, keeps_what_is_written)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);

	cr_assert_eq(container_nr_blocks(c), 1024);
	cr_assert_eq(byte_at(d, 1023), 0);
	write_byte(c, 1023, 7);
	cr_assert_eq(byte_at(d, 1023), 7);
	container_close(c);
	cr_assert_eq(byte_at(d, 1023), 7);
}

Test(emudev, clones_are_apart)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	auto_emudev struct emudev *e = NULL;

	write_byte(emudev_container(d), 5, 1);
	e = emudev_clone(d);
	cr_assert(emudev_equal(d, e));
	write_byte(emudev_container(e), 5, 2);
	write_byte(emudev_container(d), 6, 3);
	cr_assert_eq(byte_at(d, 5), 1);
	cr_assert_eq(byte_at(e, 5), 2);
	cr_assert_eq(byte_at(e, 6), 0);
	cr_assert_not(emudev_equal(d, e));
}

Test(emudev, any_prefix_can_be_had_in_any_order)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);

	write_byte(c, 5, 1);
	write_byte(c, 5, 2);
	cr_assert_eq(container_flush(c), 0);
	write_byte(c, 5, 3);
	cr_assert_eq(emudev_nr_events(d), 4);

	for (int round = 0; round < 2; round++) {
		cr_assert_eq(byte_after(d, 4, EMUDEV_KEEP, 0, 5), 3);
		cr_assert_eq(byte_after(d, 4, EMUDEV_LOSE, 0, 5), 2);
		cr_assert_eq(byte_after(d, 3, EMUDEV_LOSE, 0, 5), 2);
		cr_assert_eq(byte_after(d, 2, EMUDEV_LOSE, 0, 5), 0);
		cr_assert_eq(byte_after(d, 1, EMUDEV_KEEP, 0, 5), 1);
		cr_assert_eq(byte_after(d, 0, EMUDEV_KEEP, 0, 5), 0);
	}
}

Test(emudev, events_can_be_looked_at)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 8 * MIB);
	struct container *c = emudev_container(d);
	struct emudev_event e;

	write_byte(c, 9, 4);
	cr_assert_eq(container_flush(c), 0);
	cr_assert_eq(container_back(c, 1024, 1024), 0);

	e = emudev_event_at(d, 0);
	cr_assert_eq(e.type, EMUDEV_WRITE);
	cr_assert_eq(e.block, 9);
	cr_assert_eq(e.data[4095], 4);
	cr_assert_eq(emudev_event_at(d, 1).type, EMUDEV_FLUSH);
	e = emudev_event_at(d, 2);
	cr_assert_eq(e.type, EMUDEV_GROW);
	cr_assert_eq(e.nr, 2048);
}

/* 512-byte pieces of the block that hold @byte. */
static unsigned int pieces_of(struct emudev *d, block_t block, uint8_t byte)
{
	uint8_t buf[BLOCK_BYTES];
	unsigned int nr = 0;

	emudev_peek(d, block, buf);
	for (size_t i = 0; i < BLOCK_BYTES; i += 512) {
		cr_assert_eq(buf[i], buf[i + 511]);
		nr += buf[i] == byte;
	}
	return nr;
}

Test(emudev, unflushed_writes_are_kept_lost_torn_or_spoiled)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);
	unsigned int kept = 0, lost = 0, torn = 0, spoiled = 0;

	write_byte(c, 7, 1);
	write_byte(c, 8, 1);
	cr_assert_eq(container_flush(c), 0);
	write_byte(c, 8, 2);

	for (uint64_t seed = 0; seed < 500; seed++) {
		auto_emudev struct emudev *i =
			emudev_image_at(d, 4, EMUDEV_REORDER_BAD, seed);
		auto_emudev struct emudev *again =
			emudev_image_at(d, 4, EMUDEV_REORDER_BAD, seed);
		unsigned int nr;

		cr_assert(emudev_equal(i, again));
		cr_assert_eq(byte_at(i, 7), 1);
		if (byte_at(i, 8) < 0) {
			spoiled++;
			continue;
		}
		nr = pieces_of(i, 8, 2);
		cr_assert_eq(nr + pieces_of(i, 8, 1), 8);
		kept += nr == 8;
		lost += nr == 0;
		torn += nr > 0 && nr < 8;
	}
	cr_assert(kept > 20 && lost > 20 && torn > 20 && spoiled > 20);
}

Test(emudev, reordering_reaches_every_subset)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);
	unsigned int seen = 0;

	for (block_t b = 0; b < 4; b++)
		write_byte(c, b, 1);
	for (uint64_t seed = 0; seed < 1000; seed++) {
		auto_emudev struct emudev *i =
			emudev_image_at(d, 4, EMUDEV_REORDER, seed);
		unsigned int subset = 0;

		for (block_t b = 0; b < 4; b++)
			subset |= (unsigned int)byte_at(i, b) << b;
		seen |= 1u << subset;
	}
	cr_assert_eq(seen, 0xffff);
}

Test(emudev, growth_counts_after_the_flush)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 8 * MIB);
	struct container *c = emudev_container(d);
	auto_emudev struct emudev *lost = NULL, *kept = NULL;

	cr_assert_eq(container_back(c, 1024, 256), 0);
	write_byte(c, 1279, 1);
	lost = emudev_image_at(d, 2, EMUDEV_LOSE, 0);
	cr_assert_eq(container_nr_blocks(emudev_container(lost)), 1024);
	cr_assert_eq(container_flush(c), 0);
	kept = emudev_image_at(d, 3, EMUDEV_LOSE, 0);
	cr_assert_eq(container_nr_blocks(emudev_container(kept)), 1280);
	cr_assert_eq(byte_at(kept, 1279), 1);

	/* Writes behind an end that was lost do no harm. */
	for (uint64_t seed = 0; seed < 50; seed++)
		emudev_free(emudev_image_at(d, 2, EMUDEV_REORDER, seed));
}

Test(emudev, host_gets_full)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 8 * MIB);
	struct container *c = emudev_container(d);
	uint64_t nr;

	cr_assert_eq(container_host_free(c, &nr), 0);
	cr_assert_eq(nr, 1024);
	cr_assert_eq(container_back(c, 1024, 1025), -ENOSPC);
	cr_assert_eq(container_nr_blocks(c), 1024);
	emudev_set_host_limit(d, 16 * MIB);
	cr_assert_eq(container_back(c, 1024, 1025), 0);
	emudev_set_host_limit(d, 0);
	cr_assert_eq(container_host_free(c, &nr), 0);
	cr_assert_eq(nr, 0);
}

Test(emudev, power_ends_in_the_middle_of_a_write)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);
	uint8_t buf[4 * BLOCK_BYTES];

	memset(buf, 6, sizeof(buf));
	emudev_cut_after(d, 2);
	cr_assert_not(emudev_is_off(d));
	cr_assert_eq(container_write(c, 10, 4, buf), -EIO);
	cr_assert(emudev_is_off(d));
	cr_assert_eq(emudev_nr_events(d), 2);
	cr_assert_eq(container_read(c, 10, 1, buf), -EIO);
	cr_assert_eq(container_flush(c), -EIO);
	cr_assert_eq(container_back(c, 2000, 1), -EIO);

	emudev_power_on(d, EMUDEV_KEEP, 0);
	cr_assert_eq(byte_at(d, 11), 6);
	cr_assert_eq(byte_at(d, 12), 0);
	cr_assert_eq(emudev_nr_events(d), 0);
	write_byte(c, 12, 6);
	emudev_power_on(d, EMUDEV_LOSE, 0);
	cr_assert_eq(byte_at(d, 11), 6);
	cr_assert_eq(byte_at(d, 12), 0);
}

Test(emudev, chosen_calls_fail)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);
	uint8_t buf[2 * BLOCK_BYTES];

	memset(buf, 1, sizeof(buf));
	emudev_fail(d, EMUDEV_OP_READ, 2, 1, -EIO);
	cr_assert_eq(container_read(c, 0, 1, buf + BLOCK_BYTES), 0);
	cr_assert_eq(container_read(c, 0, 1, buf + BLOCK_BYTES), -EIO);
	cr_assert_eq(container_read(c, 0, 1, buf + BLOCK_BYTES), 0);
	cr_assert_eq(emudev_nr_calls(d, EMUDEV_OP_READ), 3);

	emudev_fail(d, EMUDEV_OP_WRITE, 1, 1, -ENOSPC);
	cr_assert_eq(container_write(c, 0, 2, buf), -ENOSPC);
	cr_assert_eq(byte_at(d, 0), 1);
	cr_assert_eq(byte_at(d, 1), 0);
	cr_assert_eq(container_write(c, 0, 2, buf), 0);

	emudev_fail(d, EMUDEV_OP_FLUSH, 1, UINT64_MAX, -EIO);
	cr_assert_eq(container_flush(c), -EIO);
	cr_assert_eq(container_flush(c), -EIO);
	cr_assert_eq(byte_after(d, emudev_nr_events(d), EMUDEV_LOSE, 0, 0), 0);
	emudev_fail(d, EMUDEV_OP_BACK, 1, 1, -ENOSPC);
	cr_assert_eq(container_back(c, 0, 1), -ENOSPC);
	cr_assert_eq(container_back(c, 0, 1), 0);
}

Test(emudev, spoiled_block_heals_when_written)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	struct container *c = emudev_container(d);

	emudev_spoil(d, 3);
	cr_assert_eq(byte_at(d, 3), -1);
	cr_assert_eq(byte_at(d, 2), 0);
	write_byte(c, 3, 9);
	cr_assert_eq(byte_at(d, 3), 9);
}

Test(emudev, bits_are_flipped_behind_the_back)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);

	emudev_flip_bit(d, 3, 5);
	cr_assert_eq(byte_at(d, 3), 32);
	emudev_flip_bit(d, 3, 5);
	cr_assert_eq(byte_at(d, 3), 0);
	emudev_poke(d, 3, 0, "A", 1);
	cr_assert_eq(byte_at(d, 3), 'A');
	cr_assert_eq(byte_after(d, 0, EMUDEV_LOSE, 0, 3), 'A');
}

Test(emudev, log_can_be_left_out)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);

	emudev_stop_log(d);
	write_byte(emudev_container(d), 3, 1);
	cr_assert_eq(emudev_nr_events(d), 0);
	emudev_start_log(d);
	write_byte(emudev_container(d), 3, 2);
	cr_assert_eq(emudev_nr_events(d), 1);
	cr_assert_eq(byte_after(d, 1, EMUDEV_LOSE, 0, 3), 1);
}

Test(emudev, content_can_be_saved)
{
	auto_emudev struct emudev *d = emudev_new(4 * MIB, 4 * MIB);
	char folder[64], path[80];
	struct container *c;
	uint8_t buf[BLOCK_BYTES];

	make_folder(folder);
	snprintf(path, sizeof(path), "%s/image", folder);
	write_byte(emudev_container(d), 1000, 8);
	cr_assert_eq(emudev_save(d, path), 0);
	cr_assert_eq(emudev_save(d, path), -EEXIST);

	cr_assert_eq(container_open(&c, path, CONTAINER_READ_ONLY, 0, NULL), 0);
	cr_assert_eq(container_nr_blocks(c), 1024);
	cr_assert_eq(container_read(c, 1000, 1, buf), 0);
	cr_assert_eq(buf[77], 8);
	container_close(c);
	remove_folder(folder);
}
