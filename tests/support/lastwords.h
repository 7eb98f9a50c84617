/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A random test that dies, by an assertion, a hang or a sanitizer, still says
 * how to repeat it.
 */
#ifndef TESTS_SUPPORT_LASTWORDS_H
#define TESTS_SUPPORT_LASTWORDS_H

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In every sanitizer's runtime, else missing. */
void __sanitizer_set_death_callback(void (*callback)(void))
	__attribute__((weak));

/* Kept ready as bytes: nothing is formatted while dying. */
extern char last_words[256];

static inline void last_words_say(void)
{
	if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0)
		_exit(1);
}

static inline void last_words_signal(int sig)
{
	last_words_say();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* To be used once, at the start of main(). */
static inline void last_words_init(void)
{
	signal(SIGABRT, last_words_signal);
	signal(SIGALRM, last_words_signal);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(last_words_say);
	else
		signal(SIGSEGV, last_words_signal);
}

#endif
