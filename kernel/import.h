/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * t3: dma-bufs as regions (import.c), and their use by a trigger (hold.c).
 */
#ifndef T3_IMPORT_H
#define T3_IMPORT_H

#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/iosys-map.h>
#include <linux/ww_mutex.h>

#include "t3.h"

enum t3_import_state {
	T3_IMPORT_UNMAPPED,
	T3_IMPORT_BUSY,		/* somebody maps or unmaps it */
	T3_IMPORT_MAPPED,
	T3_IMPORT_CLOSED,	/* @buf and @attach are gone */
};

/**
 * struct t3_import - the dma-buf that a region lies in
 * @buf: with a reference
 * @attach: only to hear of moves
 * @lock: spinlock: @state, @users, @closing
 * @state: what @map is; only who has set BUSY changes @map
 * @users: executors that use @map: it stays while there are any. Each has put
 *	a fence on the buffer before, under its reservation.
 * @closing: nobody is to begin with it any more
 * @moved: the mapping is of where the buffer was. Set by its exporter under
 *	the reservation; cleared before mapping by whoever maps; believed only
 *	under the reservation.
 * @map: the whole buffer as the kernel sees it
 * @idle: waits for BUSY and @users to go
 * @tidy: unmaps what has moved
 *
 * @buf and @attach are constant until CLOSED; who uses @buf outside of BUSY and
 * @users takes a reference under @lock. Lives as long as its region.
 */
struct t3_import {
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	spinlock_t lock; /* see above */
	enum t3_import_state state;
	u32 users;
	bool closing;
	bool moved;
	struct iosys_map map;
	wait_queue_head_t idle;
	struct work_struct tidy;
};

/**
 * struct t3_held - a buffer that a trigger uses
 * @import: of its region
 * @buf: with a reference of our own
 * @write: it is the destination
 * @fence_write: some buffer with the same reservation is
 * @twin: an earlier one has the same reservation: locked and fenced there
 */
struct t3_held {
	struct t3_import *import;
	struct dma_buf *buf;
	bool write;
	bool fence_write;
	bool twin;
};

/**
 * struct t3_hold - the buffers of one trigger; a worker's own
 * @ctx: under which all their reservations are taken
 * @fence: on all of them from t3_hold_begin() to t3_hold_end()
 * @context: the worker's timeline
 * @seqno: of the last fence
 * @cookie: lockdep's, from the fence's publication to its signal
 * @buffers: number of entries of @held
 * @held: each import once
 */
struct t3_hold {
	struct ww_acquire_ctx ctx;
	struct dma_fence *fence;
	u64 context;
	u64 seqno;
	bool cookie;
	u32 buffers;
	struct t3_held held[T3_MAX_RANKS + 1];
};

static inline void *t3_import_address(const struct t3_import *import)
{
	return import->map.vaddr;
}

/* import.c */
int t3_import_region(struct t3_member *member, struct t3_region *region,
		     int fd);
int t3_import_place(struct t3_member *member, struct t3_region *region);
void t3_import_close(struct t3_import *import);
struct dma_buf *t3_import_get(struct t3_import *import);
int t3_import_map(struct t3_import *import, const struct t3_group *group);
bool t3_import_use(struct t3_import *import);
void t3_import_unuse(struct t3_import *import);

/* hold.c */
struct t3_hold *t3_hold_new(void);
void t3_hold_reset(struct t3_hold *hold);
void t3_hold_add(struct t3_hold *hold, struct t3_import *import, bool write);
int t3_hold_begin(struct t3_hold *hold, const struct t3_group *group);
void t3_hold_end(struct t3_hold *hold, int error);

#endif /* T3_IMPORT_H */
