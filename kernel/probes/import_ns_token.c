// SPDX-License-Identifier: GPL-2.0-only
/* Is a symbol namespace imported as a token? (a string from 6.13 on) */
#include <linux/module.h>

MODULE_IMPORT_NS(DMA_BUF);
MODULE_LICENSE("GPL");
