// SPDX-License-Identifier: GPL-2.0-only
/* Does dma_buf_vmap() want the reservation held, with a twin that doesn't? (6.2) */
#include <linux/dma-buf.h>
#include <linux/module.h>

int probe(struct dma_buf *buf, struct iosys_map *map);
int probe(struct dma_buf *buf, struct iosys_map *map)
{
	int ret = dma_buf_vmap_unlocked(buf, map);

	if (!ret)
		dma_buf_vunmap_unlocked(buf, map);
	return ret;
}

MODULE_LICENSE("GPL");
