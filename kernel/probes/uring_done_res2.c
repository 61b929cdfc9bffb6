// SPDX-License-Identifier: GPL-2.0-only
/* Has a ring command's completion a second result? (until 6.17) */
#if __has_include("linux/io_uring/cmd.h")
#include <linux/io_uring/cmd.h>
#else
#include <linux/io_uring.h>
#endif
#include <linux/module.h>

void probe(struct io_uring_cmd *cmd, unsigned int issue_flags);
void probe(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	io_uring_cmd_done(cmd, 0, 0, issue_flags);
}

MODULE_LICENSE("GPL");
