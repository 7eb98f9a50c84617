/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each format against lines whose meaning is known. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/replay/text-trace.h"

#define NS_PER_S UINT64_C(1000000000)

static struct text_trace t;

/* ---- T03: units ---- */

Test(readers, t03_two_operations_one_second_apart)
{
	static const struct {
		const char *format, *text;
	} traces[] = {
		{ "fio", "fio version 3 iolog\n"
			 "5 /a add\n7 /a open\n"
			 "1000 /a read 0 4096\n"
			 "1001000 /a write 4096 8192\n" },
		/* wait: milliseconds since the start, as fio obeys it */
		{ "fio", "fio version 2 iolog\n"
			 "/a add\n/a open\n"
			 "/a read 0 4096\n/a wait 1000 0\n"
			 "/a write 4096 8192\n" },
		{ "msr", "128166372003061629,h,0,Read,0,4096,10\n"
			 "128166372013061629,h,0,Write,4096,8192,10\n" },
		{ "blkparse", "  8,0 1 1 0.500000000 9  Q   R 0 + 8 [a]\n"
			      "  8,0 1 2 1.500000000 9  Q   W 8 + 16 [a]\n" },
	};

	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++) {
		text_read(&t, traces[i].text);
		cr_assert_eq(t.nr, 2, "%zu: %zu records", i, t.nr);
		cr_expect_str_eq(t.format, traces[i].format);
		cr_expect_eq(t.nr_bad, 0, "%zu: %s", i, t.bad_reason[0]);
		cr_expect_eq(t.rec[1].time_ns - t.rec[0].time_ns, NS_PER_S,
			     "%zu", i);
		cr_expect_eq(t.rec[0].op, TRACE_READ);
		cr_expect_eq(t.rec[0].offset, 0);
		cr_expect_eq(t.rec[0].length, 4096);
		cr_expect_eq(t.rec[1].op, TRACE_WRITE);
		cr_expect_eq(t.rec[1].offset, 4096);
		cr_expect_eq(t.rec[1].length, 8192);
	}
}

Test(readers, t03_times_since_1601_lose_no_digit)
{
	text_read(&t, "128166372003061629,h,0,Read,0,512,1\n"
		      "128166372003061630,h,0,Read,0,512,1\n"
		      "184467440737095516,h,0,Read,0,512,1\n"
		      "184467440737095517,h,0,Read,0,512,1\n");
	cr_assert_eq(t.nr, 3);
	cr_expect_eq(t.rec[0].time_ns, UINT64_C(12816637200306162900));
	cr_expect_eq(t.rec[1].time_ns - t.rec[0].time_ns, 100);
	cr_expect_eq(t.rec[2].time_ns, UINT64_C(18446744073709551600));
	cr_assert_eq(t.nr_bad, 1);
	cr_expect_eq(t.bad_line[0], 4);
}

/* ---- fio ---- */

Test(readers, fio_syncs_are_flushes_without_an_offset)
{
	text_read(&t, "fio version 3 iolog\r\n"
		      "10 /a sync 2512896 0\r\n"
		      "20 /a datasync 5 7\r\n"
		      "30 /a trim 0 2147483648\r\n"
		      "40 /a close\r\n");
	cr_assert_eq(t.nr, 3);
	cr_expect_eq(t.rec[0].op, TRACE_FLUSH);
	cr_expect_eq(t.rec[0].offset, 0);
	cr_expect_eq(t.rec[1].op, TRACE_FLUSH);
	cr_expect_eq(t.rec[1].length, 0);
	cr_expect(t.rec[1].flags & TRACE_DATA_ONLY);
	cr_expect_eq(t.rec[2].op, TRACE_TRIM);
	cr_expect_eq(t.rec[2].length, UINT64_C(1) << 31);
	cr_expect_eq(t.nr_bad, 0);
}

Test(readers, fio_waits_that_are_not_later_do_nothing)
{
	text_read(&t, "fio version 2 iolog\n"
		      "/a wait 1000 0\n/a read 0 1\n"
		      "/a wait 1000 0\n/a read 0 1\n"
		      "/a wait 400 0\n/a read 0 1\n"
		      "/a wait 1500 0\n/a read 0 1");
	cr_assert_eq(t.nr, 4);
	cr_expect_eq(t.times, READER_WAITS);
	cr_expect_eq(t.rec[0].time_ns, NS_PER_S);
	cr_expect_eq(t.rec[1].time_ns, NS_PER_S);
	cr_expect_eq(t.rec[2].time_ns, NS_PER_S);
	cr_expect_eq(t.rec[3].time_ns, NS_PER_S / 2 * 3);
}

Test(readers, fio_bad_lines_have_numbers_and_reasons)
{
	text_read(&t, "fio version 3 iolog\n"
		      "1 /a read 0\n"
		      "x /a read 0 512\n"
		      "1 /a reed 0 512\n"
		      "1 /a read -1 512\n"
		      "1 /a read 0 0x10\n"
		      "1 /a read 9223372036854775807 1\n"
		      "1 /a wait 5 0\n"
		      "\n"
		      "1 /a read 0 512\n");
	cr_expect_eq(t.nr, 1);
	cr_assert_eq(t.nr_bad, 7);
	for (size_t i = 0; i < 7; i++)
		cr_expect_eq(t.bad_line[i], i + 2);
	cr_expect(strstr(t.bad_reason[2], "action"));
	cr_expect(strstr(t.bad_reason[5], "2^63"));
	cr_expect(strstr(t.bad_reason[6], "wait"));
}

Test(readers, fio_version_1)
{
	text_read(&t, "0, 0, 4096\n1,4096,512\n");
	cr_assert_eq(t.nr, 2);
	cr_expect_str_eq(t.format, "fiov1");
	cr_expect_eq(t.times, READER_NO_TIMES);
	cr_expect_eq(t.rec[1].op, TRACE_WRITE);
}

/* ---- T05: several devices or files ---- */

Test(readers, t05_files_of_fio_that_open_twice_and_have_blanks)
{
	text_read(&t, "fio version 3 iolog\n"
		      "1 /a add\n1 /b c add\n2 /a open\n3 /a close\n4 /a open\n"
		      "4 /a open\n5 /a write 0 512\n6 /b c write 0 512\n"
		      "7 /never opened write 0 512\n");
	cr_assert_eq(t.nr, 3);
	cr_expect_eq(t.nr_bad, 0);
	cr_expect_eq(t.nr_targets, 3);
	cr_expect_str_eq(t.target[0], "/a");
	cr_expect_str_eq(t.target[1], "/b c");
	cr_expect_str_eq(t.target[2], "/never opened");
}

Test(readers, t05_devices_of_blkparse)
{
	text_read(&t, "  8,0  1 1 0.000000000 9  Q   W 0 + 8 [a]\n"
		      "  8,16 1 2 0.000000001 9  Q   W 0 + 8 [a]\n"
		      "  8,0  1 3 0.000000002 9  Q   W 8 + 8 [a]\n");
	cr_assert_eq(t.nr, 3);
	cr_expect_eq(t.nr_targets, 2);
	cr_expect_eq(t.rec[0].target, t.rec[2].target);
	cr_expect_neq(t.rec[0].target, t.rec[1].target);
}

Test(readers, t05_hosts_and_disks_of_msr)
{
	text_read(&t, "128166372003061629,usr,0,Read,0,512,1\n"
		      "128166372003061629,usr,1,Read,0,512,1\n"
		      "128166372003061629,web,0,Read,0,512,1\n"
		      "128166372003061629,usr,0,Read,0,512,1\n");
	cr_assert_eq(t.nr, 4);
	cr_expect_eq(t.nr_targets, 3);
	cr_expect_str_eq(t.target[2], "web.0");
	cr_expect_eq(t.rec[3].target, t.rec[0].target);
}

/* ---- T07: which events count ---- */

/*
 * Five requests.  The second write is merged into the first; a flush comes
 * with a write, another alone.
 */
static const char events[] =
	"# a comment\n"
	"  8,0 0  1 0.000000001 7  Q  WS 100 + 8 [my prog (x)]\n"
	"  8,0 0  2 0.000000002 7  G  WS 100 + 8 [my prog (x)]\n"
	"  8,0 0  3 0.000000003 7  P   N [my prog (x)]\n"
	"  8,0 0  4 0.000000004 7  Q  WS 108 + 8 [my prog (x)]\n"
	"  8,0 0  5 0.000000005 7  M  WS 108 + 8 [my prog (x)]\n"
	"  8,0 0  6 0.000000006 7  A  RA 300 + 8 <- (8,1) 200\n"
	"  8,0 0  7 0.000000007 7  Q  RA 300 + 8 [my prog (x)]\n"
	"  8,0 0  8 0.000000008 7  Q FWFS 400 + 16 [(null)]\n"
	"  8,0 0  9 0.000000009 7  Q  DS 500 + 2048 [trim]\n"
	"  8,0 0 10 0.000000010 7  U   N [my prog (x)] 3\n"
	"  8,0 0  0 0.000000010 0  m   N cfq workload slice:100\n"
	"  8,0 0 11 0.000000011 7  D  WS 100 + 16 [my prog (x)]\n"
	"  8,0 0 12 0.000000012 7  D  RA 300 + 8 [my prog (x)]\n"
	"  8,0 0 13 0.000000013 7  D  FN [kworker]\n"
	"  8,0 0 14 0.000000014 7  D  WS 400 + 16 [(null)]\n"
	"  8,0 0 15 0.000000015 7  D  DS 500 + 2048 [trim]\n"
	"  8,0 0 16 0.000000016 7  X  WS 100 / 108 [my prog (x)]\n"
	"  8,0 0 17 0.000000017 0  C  WS 100 + 16 [0]\n"
	"  8,0 0 18 0.000000018 0  C  RA 300 + 8 [0]\n"
	"  8,0 0 19 0.000000019 7  D   R 36 (12 00 00 00) [smartd]\n"
	"CPU0 (8,0):\n"
	" Reads Queued:           1,        4KiB\n"
	"Total (8,0):\n";

Test(readers, t07_queued_events_each_once)
{
	text_read(&t, events);
	cr_expect_eq(t.event, 'Q');
	cr_assert_eq(t.nr, 5);
	cr_expect_eq(t.nr_bad, 0, "%s", t.bad_reason[0]);
	cr_expect_eq(t.rec[0].offset, 51200);
	cr_expect_eq(t.rec[0].length, 4096);
	cr_expect_eq(t.rec[0].flags, TRACE_SYNC);
	cr_expect_eq(t.rec[1].offset, 55296);
	cr_expect_eq(t.rec[2].op, TRACE_READ);
	cr_expect_eq(t.rec[2].flags, TRACE_READAHEAD);
	/* A write that flushes stays a write. */
	cr_expect_eq(t.rec[3].op, TRACE_WRITE);
	cr_expect_eq(t.rec[3].length, 8192);
	cr_expect_eq(t.rec[3].flags, TRACE_PREFLUSH | TRACE_FUA | TRACE_SYNC);
	cr_expect_eq(t.rec[4].op, TRACE_TRIM);
	cr_expect_eq(t.rec[4].length, 1048576);
	cr_expect_eq(t.rec[4].time_ns, 9);
}

Test(readers, t07_issued_events_on_request)
{
	const struct reader_options o = { .event = 'D' };

	text_read_bytes(&t, events, strlen(events), &o);
	cr_assert_eq(t.nr, 5);
	cr_expect_eq(t.rec[0].length, 8192, "the merged ones are one");
	cr_expect_eq(t.rec[1].op, TRACE_READ);
	cr_expect_eq(t.rec[2].op, TRACE_FLUSH);
	cr_expect_eq(t.rec[3].op, TRACE_WRITE);
	cr_expect_eq(t.rec[4].op, TRACE_TRIM);
}

Test(readers, t07_the_best_kind_there_is)
{
	text_read(&t, "  8,0 0 1 0.000000001 7  C  WS 100 + 16 [0]\n"
		      "  8,0 0 2 0.000000002 7  D  WS 100 + 16 [a]\n"
		      "  8,0 0 3 0.000000003 7  D  WS 200 + 16 [a]\n");
	cr_expect_eq(t.event, 'D');
	cr_expect_eq(t.nr, 2);
	text_read(&t, "  8,0 0 1 0.000000001 7  C  WS 100 + 16 [0]\n");
	cr_expect_eq(t.event, 'C');
	cr_expect_eq(t.nr, 1);
	/* Those of before the first Q were in flight when tracing began. */
	text_read(&t, "  8,0 0 1 0.000000001 7  D  WS 100 + 16 [a]\n"
		      "  8,0 0 2 0.000000002 7  Q  WS 200 + 16 [a]\n");
	cr_expect_eq(t.event, 'Q');
	cr_expect_eq(t.nr, 1);
}

/* ---- MSR ---- */

Test(readers, msr_headers_blanks_and_bad_rows)
{
	text_read(&t, "Timestamp,Hostname,DiskNumber,Type,Offset,Size,"
		      "ResponseTime\r\n"
		      "128166372003061629,h,0,Read,0,512,1\r\n"
		      "\r\n"
		      "Timestamp,Hostname,DiskNumber,Type,Offset,Size,Resp\r\n"
		      "128166372003061629, h , 0 ,write,0,0,1\r\n"
		      "128166372003061629,h,0,Trim,0,512,1\r\n"
		      "128166372003061629,h,0,Read,0\r\n"
		      "128166372003061629,h,0,Read,0,512,\r\n"
		      "128166372003061629,h,0,Read,0,512,1");
	cr_expect_eq(t.nr, 3);
	cr_expect_eq(t.nr_bad, 3);
	cr_expect_eq(t.bad_line[0], 6);
	cr_expect_eq(t.rec[1].length, 0);
	cr_expect_eq(t.nr_targets, 1);
}

/* ---- what is none ---- */

Test(readers, nothing_that_is_known)
{
	text_read(&t, "");
	cr_expect_eq(t.err, -ENOMSG);
	cr_expect(strstr(t.error, "empty"));
	text_read(&t, "hello\nworld\n");
	cr_expect_eq(t.err, -ENOMSG);
	text_read(&t, "fio version 9 iolog\n");
	cr_expect_eq(t.err, -ENOMSG);
}
