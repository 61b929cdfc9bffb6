/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_LINUX_T3_H
#define _UAPI_LINUX_T3_H

#include <linux/types.h>

/* Element types of a region. */
#define T3_DTYPE_F32	1
#define T3_DTYPE_F64	2
#define T3_DTYPE_F16	3
#define T3_DTYPE_BF16	4
#define T3_DTYPE_I32	5
#define T3_DTYPE_COUNT	5

#define T3_MAX_RANKS	64

#endif /* _UAPI_LINUX_T3_H */
