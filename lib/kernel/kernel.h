/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel engine: libt3's seam by way of /dev/t3.
 */
#ifndef T3_LIB_KERNEL_H
#define T3_LIB_KERNEL_H

#include "../engine.h"

#define KERNEL_DEVICE	"/dev/t3"
#define KERNEL_NEEDS	(T3_FEATURE_USER_MEMORY | T3_FEATURE_ENGINE_CPU)

/**
 * struct kernel_member - a rank
 * @m: the front's
 * @fd: the member's file
 * @forks: kernel_forks when it joined: another number is a forked child, which
 *	has the file, but neither the right to use it nor the mappings
 * @no_uring: why commands do not go through io_uring; NULL: they do
 * @uring_waits: T3_WAIT may pend there
 *
 * Constant after joining.
 */
struct kernel_member {
	struct t3_member m;
	int fd;
	uint32_t forks;
	const char *no_uring;
	bool uring_waits;
};

/* Counted in the child at each fork, before it has threads. */
extern uint32_t kernel_forks;

/**
 * struct kernel_region - a registered buffer
 * @r: the front's
 * @number: the kernel's
 */
struct kernel_region {
	struct t3_region r;
	uint32_t number;
};

/**
 * struct kernel_plan - a plan
 * @p: the front's
 * @status: mapped, read-only
 * @status_bytes: of the mapping
 * @count: [blocks] updates so far, within @status
 *
 * Constant once the plan is live. What is mapped is written by the kernel.
 */
struct kernel_plan {
	struct t3_plan p;
	const struct t3_plan_status *status;
	size_t status_bytes;
	const uint32_t *count;
};

static inline struct kernel_plan *kernel_plan(struct t3_plan *plan)
{
	return (struct kernel_plan *)plan;
}

static inline int kernel_fd(const struct t3_member *member)
{
	return ((const struct kernel_member *)member)->fd;
}

static inline bool kernel_is_foreign(const struct t3_member *member)
{
	return ((const struct kernel_member *)member)->forks != kernel_forks;
}

static inline uint32_t kernel_region_number(const struct t3_region *region)
{
	return ((const struct kernel_region *)region)->number;
}

/* ioctl(), again where a signal came; 0 or -errno. */
int kernel_call(int fd, unsigned long command, void *argument);

/**
 * kernel_issue - a command that may go through io_uring
 * @member: whose
 * @command: T3_ARM, T3_NOTIFY, T3_REGION_ADD or T3_WAIT
 * @argument: its structure
 *
 * Return: 0 or -errno; -EINTR is the caller's to deal with.
 */
int kernel_issue(const struct t3_member *member, unsigned long command,
		 void *argument);

/* Decides, when a member has joined, whether its commands use io_uring. */
void kernel_uring_choose(struct kernel_member *member);

/* Does it use io_uring? Return: 1 or 0, and a sentence. */
int kernel_uring_why(const struct t3_member *member, char *why, size_t bytes);

/**
 * kernel_fail - the sentence for a command that failed
 * @member: whose
 * @call: the public function
 * @error: a positive errno
 *
 * For those errors that many commands have; else strerror()'s words.
 *
 * Return: -@error.
 */
int kernel_fail(const struct t3_member *member, const char *call, int error);

/* Is @error one of a group that broke? */
bool kernel_is_broken(int error);

int kernel_open(const char *call, int *fd, struct t3_query *query);
int kernel_probe(char *why, size_t bytes);
int kernel_group_create(struct t3_group *group);
int kernel_group_is(int fd, uint32_t *ranks);

int kernel_join(struct t3_member *member, int fd);
int kernel_leave(struct t3_member *member, bool armed);
int kernel_abort(struct t3_member *member);
int kernel_alloc(struct t3_member *member, size_t bytes, void **memory);
int kernel_free(struct t3_member *member, void *memory);

int kernel_region_add(struct t3_region *region);
void kernel_region_del(struct t3_region *region);

int kernel_plan_add(struct t3_plan *plan, struct t3_verdict *verdict);
int kernel_plan_del(struct t3_plan *plan);
void kernel_plan_unmap(struct kernel_plan *plan);

int kernel_arm(struct t3_plan *plan);
int kernel_tiles(struct t3_plan *plan, const struct t3_tiles *tiles,
		 uint32_t n);
int kernel_wait(struct t3_plan *plan, uint32_t timeout_ms);
int kernel_wait_block(struct t3_plan *plan, uint32_t block, uint32_t updates,
		      uint32_t timeout_ms);

#endif /* T3_LIB_KERNEL_H */
