// SPDX-License-Identifier: GPL-2.0-only
/* Have ring commands a header of their own? (6.8) */
#include <linux/io_uring/cmd.h>
#include <linux/module.h>

unsigned int probe(const struct io_uring_cmd *cmd);
unsigned int probe(const struct io_uring_cmd *cmd)
{
	return cmd->cmd_op;
}

MODULE_LICENSE("GPL");
