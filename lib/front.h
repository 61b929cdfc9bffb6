/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of libt3's front share among themselves.
 */
#ifndef T3_LIB_FRONT_H
#define T3_LIB_FRONT_H

#include "engine.h"

/* A pointer that must not be NULL. Return: -EINVAL. */
int t3_fail_null(const char *call, const char *name);

/* A number that is not in low .. high. Return: -ERANGE. */
int t3_fail_range(const char *call, const char *name, uint64_t value,
		  uint64_t low, uint64_t high);

/**
 * t3_copy_struct - take a structure that begins with its size
 * @call: the function's name
 * @name: the argument's name
 * @to: out
 * @bytes: size of @to, which this library knows
 * @least: size of the first version
 * @from: the user's
 *
 * A longer structure than the library knows is taken when the surplus is zero;
 * what a shorter one lacks is zero.
 *
 * Return: 0; -EINVAL shorter than @least; -E2BIG a surplus that is not zero.
 */
int t3_copy_struct(const char *call, const char *name, void *to, size_t bytes,
		   size_t least, const void *from);

/**
 * t3_options_take - check options and fill in the defaults
 * @call: the function's name
 * @from: the user's, or NULL
 * @to: out; @to->engine may still be T3_ENGINE_AUTO
 *
 * Return: 0; -EINVAL; -E2BIG; -ERANGE.
 */
int t3_options_take(const char *call, const struct t3_options *from,
		    struct t3_options *to);

/**
 * t3_engine_find - the engine to use
 * @call: the function's name
 * @engine: enum t3_engine; AUTO: T3_ENGINE of the environment, then the best
 *	that is there
 * @ops: out
 *
 * Return: 0; -EINVAL T3_ENGINE is no engine's name; -ENODEV it is not there.
 */
int t3_engine_find(const char *call, uint32_t engine,
		   const struct t3_engine_ops **ops);

/**
 * t3_engine_of_fd - the engine whose group a descriptor is
 * @call: the function's name
 * @fd: the descriptor
 * @ranks: out: of the group
 * @ops: out
 *
 * Return: 0; -EBADF; -ENOTTY; -EPROTO.
 */
int t3_engine_of_fd(const char *call, int fd, uint32_t *ranks,
		    const struct t3_engine_ops **ops);

/* The engine of that number that is part of this library, or NULL. */
const struct t3_engine_ops *t3_engine_ops(uint32_t engine);

/* Does one of the member's regions lie, in part, in @bytes at @base? */
bool t3_region_within(struct t3_member *member, const void *base, size_t bytes);

/* Bytes from a region's first to behind its last. */
uint64_t t3_region_extent(const struct t3_region *region);

/**
 * t3_region_make - t3_region_add() and its like
 * @call: the function's name
 * @member: as of t3_region_add()
 * @matrix: likewise; in a dma-buf its base is an offset
 * @fd: a dma-buf, which the engine takes, or -1
 * @region: out
 */
int t3_region_make(const char *call, struct t3_member *member,
		   const struct t3_matrix *matrix, int fd,
		   struct t3_region **region);

/* The same for a dma-buf, if the engine takes any. */
int t3_region_dmabuf(const char *call, struct t3_member *member,
		     const struct t3_matrix *matrix, int fd,
		     struct t3_region **region);

/* Undo t3_plan_add() in the front, after the engine has. */
void t3_plan_forget(struct t3_plan *plan);

/* Undo t3_region_add() in the front, after the engine has. */
void t3_region_forget(struct t3_region *region);

#endif /* T3_LIB_FRONT_H */
