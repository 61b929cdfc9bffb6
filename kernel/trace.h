/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: tracepoints. A group's number is that of the log and of debugfs; a slot
 * is its plan's, a block or trigger its rank's own.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM t3

#if !defined(T3_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define T3_TRACE_H

#include <linux/tracepoint.h>

#include "t3.h"

DECLARE_EVENT_CLASS(t3_epoch,
	TP_PROTO(const struct t3_plan *plan, u32 rank, u32 epoch),
	TP_ARGS(plan, rank, epoch),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, slot)
		__field(u32, rank)
		__field(u32, epoch)
	),
	TP_fast_assign(
		__entry->group = plan->group->id;
		__entry->slot = plan->slot;
		__entry->rank = rank;
		__entry->epoch = epoch;
	),
	TP_printk("group=%u slot=%u rank=%u epoch=%u", __entry->group,
		  __entry->slot, __entry->rank, __entry->epoch)
);

/* A rank has armed an epoch; it may have retired when this is written. */
DEFINE_EVENT(t3_epoch, t3_arm,
	TP_PROTO(const struct t3_plan *plan, u32 rank, u32 epoch),
	TP_ARGS(plan, rank, epoch)
);

/* An epoch of a rank has retired: its buffers are the user's again. */
DEFINE_EVENT(t3_epoch, t3_retire,
	TP_PROTO(const struct t3_plan *plan, u32 rank, u32 epoch),
	TP_ARGS(plan, rank, epoch)
);

/*
 * Tiles told of by T3_NOTIFY; tiles=0: the mapped counter was to be looked at.
 * Tiles counted in a mapping are no event of the kernel's.
 */
TRACE_EVENT(t3_tile,
	TP_PROTO(const struct t3_plan *plan, u32 rank, u32 block, u32 tiles),
	TP_ARGS(plan, rank, block, tiles),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, slot)
		__field(u32, rank)
		__field(u32, block)
		__field(u32, tiles)
	),
	TP_fast_assign(
		__entry->group = plan->group->id;
		__entry->slot = plan->slot;
		__entry->rank = rank;
		__entry->block = block;
		__entry->tiles = tiles;
	),
	TP_printk("group=%u slot=%u rank=%u block=%u tiles=%u",
		  __entry->group, __entry->slot, __entry->rank, __entry->block,
		  __entry->tiles)
);

/*
 * A block has one more update: its production is complete, or a trigger has
 * written it. updates: how many there were in all epochs.
 */
TRACE_EVENT(t3_block,
	TP_PROTO(const struct t3_plan *plan, u32 rank, u32 block, u32 updates),
	TP_ARGS(plan, rank, block, updates),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, slot)
		__field(u32, rank)
		__field(u32, block)
		__field(u32, updates)
	),
	TP_fast_assign(
		__entry->group = plan->group->id;
		__entry->slot = plan->slot;
		__entry->rank = rank;
		__entry->block = block;
		__entry->updates = updates;
	),
	TP_printk("group=%u slot=%u rank=%u block=%u updates=%u",
		  __entry->group, __entry->slot, __entry->rank, __entry->block,
		  __entry->updates)
);

DECLARE_EVENT_CLASS(t3_trigger,
	TP_PROTO(const struct t3_plan *plan, u32 trigger, u64 bytes),
	TP_ARGS(plan, trigger, bytes),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, slot)
		__field(u32, rank)
		__field(u32, trigger)
		__field(u32, op)
		__field(u64, bytes)
	),
	TP_fast_assign(
		const struct t3_graph *g = &plan->graph;
		u32 rank = g->action[trigger].rank;

		__entry->group = plan->group->id;
		__entry->slot = plan->slot;
		__entry->rank = rank;
		__entry->trigger = trigger - g->first_trigger[rank];
		__entry->op = g->action[trigger].op;
		__entry->bytes = bytes;
	),
	TP_printk("group=%u slot=%u rank=%u trigger=%u op=%s bytes=%llu",
		  __entry->group, __entry->slot, __entry->rank,
		  __entry->trigger,
		  __print_symbolic(__entry->op, { T3_OP_COPY, "copy" },
				   { T3_OP_SUM, "sum" }),
		  __entry->bytes)
);

/* All that a trigger waited for has come: it is queued. */
DEFINE_EVENT(t3_trigger, t3_trigger_ready,
	TP_PROTO(const struct t3_plan *plan, u32 trigger, u64 bytes),
	TP_ARGS(plan, trigger, bytes)
);

/* An executor begins with a trigger, or goes on with it. */
DEFINE_EVENT(t3_trigger, t3_trigger_start,
	TP_PROTO(const struct t3_plan *plan, u32 trigger, u64 bytes),
	TP_ARGS(plan, trigger, bytes)
);

/* It has no more to do with it. bytes: it has moved so many. */
DEFINE_EVENT(t3_trigger, t3_trigger_end,
	TP_PROTO(const struct t3_plan *plan, u32 trigger, u64 bytes),
	TP_ARGS(plan, trigger, bytes)
);

/* A group breaks. -1: no rank, slot or block is to be named. */
TRACE_EVENT(t3_break,
	TP_PROTO(const struct t3_group *g, u64 cause),
	TP_ARGS(g, cause),
	TP_STRUCT__entry(
		__field(u32, group)
		__field(u32, error)
		__field(s32, rank)
		__field(s32, slot)
		__field(s32, block)
	),
	TP_fast_assign(
		__entry->group = g->id;
		__entry->error = t3_cause_error(cause);
		__entry->rank = t3_cause_rank(cause);
		__entry->slot = t3_cause_slot(cause);
		__entry->block = t3_cause_block(cause);
	),
	TP_printk("group=%u error=%u rank=%d slot=%d block=%d", __entry->group,
		  __entry->error, __entry->rank, __entry->slot, __entry->block)
);

#endif /* T3_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
