// SPDX-License-Identifier: GPL-2.0-only
/* Does pin_user_pages() give the mappings too? (until 6.4) */
#include <linux/mm.h>
#include <linux/module.h>

long probe(unsigned long start, struct page **page);
long probe(unsigned long start, struct page **page)
{
	return pin_user_pages(start, 1, FOLL_LONGTERM, page, NULL);
}

MODULE_LICENSE("GPL");
