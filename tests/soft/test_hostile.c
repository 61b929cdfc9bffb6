// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A member that writes at random over all that is shared. The others may get
 * errors and wrong sums; they may not crash, write outside, or wait for ever.
 * T3_TEST_ROUNDS: how many groups; T3_TEST_SEED: what is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/soft/soft.h"
#include "matrix.h"

#define RANKS	3

static uint64_t seed;

static uint64_t dice(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* One member's life, however it goes. What it gives back is not looked at. */
static void endure(struct t3_member *member)
{
	struct shape shape = {
		.op = T3_ALL_REDUCE,
		.algorithm = T3_ALG_RING,
		.dtype = T3_DTYPE_F32,
		.rows = 30,
		.cols = 50,
		.block_bytes = 256,
	};
	struct t3_collective collective = {
		.size = sizeof(collective),
		.op = shape.op,
		.algorithm = shape.algorithm,
		.block_bytes = shape.block_bytes,
	};
	struct t3_region *region;
	struct buffer buffer;
	uint64_t end = now_ms() + 1500;
	uint32_t plans;

	if (buffer_make(member, &shape, &buffer) ||
	    t3_region_add(member, &buffer.matrix, &region))
		return;
	collective.region = region;
	for (plans = 0; plans < 4; plans++) {
		struct t3_plan *plan;

		if (t3_plan_add(member, &collective, &plan))
			continue;
		while (now_ms() < end) {
			if (t3_arm(plan) || t3_produced_all(plan) ||
			    t3_wait(plan, 300))
				break;
		}
		t3_plan_del(plan);
	}
}

static pid_t fork_member(struct t3_group *group, uint32_t rank)
{
	struct t3_member *member;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (!t3_join(group, rank, &member)) {
		endure(member);
		t3_leave(member);
	}
	exit(0);
}

static uint64_t some_value(uint64_t old)
{
	switch (dice() % 6) {
	case 0:
		return dice();
	case 4:
		/* A queue's entry: the ticket stays, the trigger is no such. */
		return (old & ~0xffffffffULL) | (uint32_t)(dice() >> dice() % 32);
	case 1:
		return old ^ 1ULL << dice() % 64;
	case 2:
		return old + dice() % 5 - 2;
	case 3:
		return dice() % 300;
	default:
		return dice() % 2 ? ~0ULL : 0;
	}
}

/* Where it hurts: the slots, the parts, and what lies first in the arenas. */
static uint64_t some_place(const struct soft_head *head)
{
	uint64_t r = dice() % RANKS;

	switch (dice() % 4) {
	case 0:
		return offsetof(struct soft_head, broken);
	case 1:
		return offsetof(struct soft_head, slot) +
		       r * sizeof(struct soft_slot) + dice() % 256;
	case 2:
		return offsetof(struct soft_head, slot) +
		       r * sizeof(struct soft_slot) +
		       offsetof(struct soft_slot, part) + dice() % 512;
	default:
		return head->arena_first + r * head->arena_bytes +
		       (dice() % 5) * SOFT_GRAIN + dice() % 8192;
	}
}

/* Write one word of the file, or say nothing where the kernel won't. */
static void spoil(int fd, const struct soft_head *head)
{
	uint64_t at = some_place(head) & ~7ULL;
	uint64_t value = 0;

	/* Breaking the group each time would end the game too early. */
	if (at == offsetof(struct soft_head, broken) && dice() % 16)
		return;
	if (pread(fd, &value, sizeof(value), at) < 0)
		return;
	value = some_value(value);
	if (pwrite(fd, &value, sizeof(value), at) < 0)
		return;
}

/* Play for a while, then let those who still wait come to their ends. */
static void be_hostile(int fd, uint32_t pace)
{
	struct soft_head head;
	uint64_t end = now_ms() + 600;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		_exit(1);
	while (now_ms() < end) {
		spoil(fd, &head);
		if (pace)
			usleep(dice() % pace);
	}
	_exit(0);
}

/* Did the process end by itself, and without a sanitizer's complaint? */
static bool ended_well(pid_t pid)
{
	uint64_t end = now_ms() + 60000;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (now_ms() > end) {
			fprintf(stderr, "# process %d sticks\n", pid);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return false;
		}
		sleep_ms(2);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fprintf(stderr, "# process %d: status %#x\n", pid, status);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool play(uint32_t round)
{
	static const uint32_t paces[] = { 0, 50, 1000, 10000 };
	struct t3_options options = soft_options();
	struct t3_group *group;
	pid_t pid[RANKS + 1];
	bool well = true;
	uint32_t r;

	options.setup_ms = 500;
	options.watchdog_ms = 200;
	options.workers = round % 3 ? T3_NO_WORKERS : 1;
	group = new_group(RANKS, &options);
	for (r = 0; r < RANKS; r++)
		pid[r] = fork_member(group, r);
	pid[RANKS] = fork();
	if (!pid[RANKS])
		be_hostile(t3_group_fd(group), paces[round % 4]);
	for (r = 0; r <= RANKS; r++)
		well = ended_well(pid[r]) && well;
	t3_group_close(group);
	dice();
	return well;
}

/* Rank 0 queues a trigger for rank 1 that there is none of. */
static int queue_stranger(struct t3_member *member, void *arg)
{
	static const struct shape shape = {
		.op = T3_REDUCE_SCATTER,
		.algorithm = T3_ALG_DIRECT,
		.dtype = T3_DTYPE_F32,
		.rows = 8,
		.cols = 8,
	};
	struct soft_plan *plan;
	struct work work;

	if (work_begin(&work, member, &shape))
		return 1;
	plan = soft_plan(work.plan);
	RANK_TRY(member, t3_arm(work.plan));
	if (t3_rank(member) == 0)
		t3_ready_push(plan->queue[1], plan->queue_mask[1],
			      *(uint32_t *)arg);
	RANK_GIVES(member, EIO, t3_wait(work.plan, 10000));
	RANK_CHECK(member, strstr(t3_error(), "overwritten"));
	return work_end(&work);
}

int main(void)
{
	/* Rank 0's own trigger; one past the last; far outside. */
	uint32_t triggers[] = { 0, 2, 1u << 30, ~0u };
	const char *n = getenv("T3_TEST_ROUNDS");
	const char *s = getenv("T3_TEST_SEED");
	uint32_t rounds = n ? atoi(n) : 12;
	uint32_t i;
	bool well = true;

	seed = s ? strtoull(s, NULL, 0) : 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < rounds && well; i++) {
		uint64_t before = seed;

		well = play(i);
		if (!well)
			fprintf(stderr, "# round %u, seed %#llx\n", i,
				(unsigned long long)before);
	}
	for (i = 0; i < 4; i++)
		tap_ok(!run_ranks(true, 2, NULL, queue_stranger, &triggers[i]),
		       "trigger %#x in a queue is seen to be a stranger's",
		       triggers[i]);
	tap_ok(well, "%u groups with a member that writes at random", rounds);
	return tap_end();
}
