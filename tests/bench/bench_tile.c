// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What it costs to tell of a tile that completes nothing: by T3_NOTIFY, and by
 * the mapped counters; and how many system calls either makes, counted by a
 * filter that traps each one.
 *
 * Prints "tile WAY ns system-calls", both of one tile.
 */
#include "../kselftest/t3_kselftest.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define TIMED	200000
#define COUNTED	1000

struct rank {
	int member;
	struct part part;
	__u32 *tiles;
	struct t3_plan_status *status;
};

static struct rank rank;

/* One block of so many tiles that it is never complete. */
static void prepare(void)
{
	static float memory[64];
	int dev = device_open(), group = group_create(dev, 1, 0);
	__u32 region;

	rank.member = group_join(group, 0);
	MUST(rank.member >= 0);
	MUST(!region_add(rank.member, memory, T3_DTYPE_F32, 1, sizeof(memory),
			 &region));
	part_init(&rank.part, 0, 1);
	part_region(&rank.part, region, 1, 64, 1, 1);
	part_produced(&rank.part, 0, 0, T3_MAX_TILES);
	/* nobody needs to be woken: the poller looks by itself */
	rank.part.add.flags = T3_PLAN_SILENT_PRODUCERS;
	MUST(!part_add(rank.member, &rank.part));
	rank.tiles = part_map_tiles(rank.member, &rank.part);
	rank.status = part_map_status(rank.member, &rank.part);
	MUST((void *)rank.tiles != MAP_FAILED);
	MUST((void *)rank.status != MAP_FAILED);
	MUST(plan_arm(rank.member, 0) == 1);
}

static void by_notify(__u32 n)
{
	struct t3_tiles tile = { .tiles = 1 };
	struct t3_notify notify = {
		.size = sizeof(notify), .entries = 1, .list = (uintptr_t)&tile,
	};

	while (n--)
		ioctl(rank.member, T3_NOTIFY, &notify);
}

static void by_mapping(__u32 n)
{
	while (n--)
		__atomic_fetch_add(&rank.tiles[0], 1, __ATOMIC_RELEASE);
}

static double ns_of(void (*tell)(__u32 n))
{
	__u64 start, best = ~0ULL;

	FOR_EACH(i, 5) {
		start = now_ns();
		tell(TIMED / 5);
		start = now_ns() - start;
		best = start < best ? start : best;
	}
	return (double)best / (TIMED / 5);
}

/* --- counting system calls ----------------------------------------------------- */

static __u32 trapped;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	__atomic_fetch_add(&trapped, 1, __ATOMIC_RELAXED);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 0;
}

/* Every call is trapped, but for a handler's return, write() and the end. */
static void trap_all(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 6, .filter = code };
	struct sigaction action = {
		.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO,
	};

	sigaction(SIGSYS, &action, NULL);
	MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	MUST(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static double calls_of(void (*tell)(__u32 n))
{
	__atomic_store_n(&trapped, 0, __ATOMIC_RELAXED);
	tell(COUNTED);
	return (double)__atomic_load_n(&trapped, __ATOMIC_RELAXED) / COUNTED;
}

int main(void)
{
	double notify_ns, mapping_ns, notify_calls, mapping_calls;
	__u32 before;

	prepare();
	notify_ns = ns_of(by_notify);
	mapping_ns = ns_of(by_mapping);
	before = rank.tiles[0];
	/* by either way every tile was counted */
	MUST(before == 2 * TIMED && !rank.status->retired);
	trap_all();
	notify_calls = calls_of(by_notify);
	mapping_calls = calls_of(by_mapping);
	printf("tile notify %.1f %.3f\ntile mapping %.1f %.3f\n", notify_ns,
	       notify_calls, mapping_ns, mapping_calls);
	fflush(stdout);
	_exit(rank.tiles[0] == before + COUNTED && mapping_calls == 0 ? 0 : 1);
}
