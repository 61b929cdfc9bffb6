/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Ranks as threads or as processes, for the soft engine's tests, and a little
 * TAP.
 */
#ifndef T3_TEST_RANKS_H
#define T3_TEST_RANKS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include <t3.h>

/* What a rank does. Return: 0; else it has said what is wrong. */
typedef int (*rank_fn)(struct t3_member *member, void *arg);

/* Say what is wrong at a rank. Return: 1. */
int rank_fails(const struct t3_member *member, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* End the rank's function where @ok is false: it fails. */
void rank_check(const struct t3_member *member, bool ok, const char *format,
		...) __attribute__((format(printf, 3, 4)));
/* Likewise where @ret is not @want. */
void rank_gives(const struct t3_member *member, int want, int ret,
		const char *where, const char *call);

#define RANK_TEXT_(line)	#line
#define RANK_TEXT(line)		RANK_TEXT_(line)
#define RANK_HERE		__FILE__ ":" RANK_TEXT(__LINE__)

/* A call that may not fail, something that must be so, and a certain error. */
#define RANK_TRY(member, call)						\
	rank_gives(member, 0, call, RANK_HERE, #call)
#define RANK_CHECK(member, cond)					\
	rank_check(member, cond, RANK_HERE ": not so: %s (%s)", #cond,	\
		   t3_error())
#define RANK_GIVES(member, error, call)					\
	rank_gives(member, -(error), call, RANK_HERE, #call)

/* Call a rank's function, which RANK_TRY and the like may end. */
int rank_call(struct t3_member *member, rank_fn fn, void *arg);

/*
 * The options of a group of the soft engine with no workers; of the gpu engine
 * where T3_TEST_ENGINE is gpu.
 */
struct t3_options soft_options(void);

/* A group, or the test ends here. */
struct t3_group *new_group(uint32_t ranks, const struct t3_options *options);

/**
 * run_ranks - a whole group
 * @processes: each rank is a forked process; else a thread
 * @ranks: how many
 * @options: NULL: soft_options()
 * @fn: joins are made and left around it
 * @arg: for @fn
 *
 * Return: how many ranks failed.
 */
int run_ranks(bool processes, uint32_t ranks, const struct t3_options *options,
	      rank_fn fn, void *arg);

/* Fork a rank that joins @group. Return: its process. */
pid_t fork_rank(struct t3_group *group, uint32_t rank, rank_fn fn, void *arg);

/* Wait for a forked rank. Return: 0 where it exited with 0. */
int reap_rank(pid_t pid);

/* Milliseconds since some time. */
uint64_t now_ms(void);
void sleep_ms(uint32_t ms);

/* TAP. */
void tap_ok(bool ok, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tap_skip(const char *why);
/* Print the plan. Return: the exit status. */
int tap_end(void);

#endif /* T3_TEST_RANKS_H */
