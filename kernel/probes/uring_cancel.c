// SPDX-License-Identifier: GPL-2.0-only
/* Can a ring get rid of a pending command? (6.7) */
#if __has_include("linux/io_uring/cmd.h")
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif
#include <linux/module.h>

void probe(struct io_uring_cmd *cmd, unsigned int issue_flags);
void probe(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	if (!(issue_flags & IO_URING_F_CANCEL))
		io_uring_cmd_mark_cancelable(cmd, issue_flags);
}

MODULE_LICENSE("GPL");
