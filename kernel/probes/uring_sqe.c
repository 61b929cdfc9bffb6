// SPDX-License-Identifier: GPL-2.0-only
/* Is a ring command's own part reached by its entry? (6.4) */
#if __has_include("linux/io_uring/cmd.h")
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif
#include <linux/module.h>

const void *probe(const struct io_uring_cmd *cmd);
const void *probe(const struct io_uring_cmd *cmd)
{
	return io_uring_sqe_cmd(cmd->sqe);
}

MODULE_LICENSE("GPL");
