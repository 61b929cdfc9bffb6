// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Regions: every kind of memory, every shape, the account of pinned pages, and
 * what becomes of a region whose memory changes under it.
 */
#include "t3_kselftest.h"

#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <linux/memfd.h>
#include <linux/userfaultfd.h>

#define PAGES	4

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static size_t some_bytes(void)
{
	return PAGES * page_size();
}

static void *map(int prot, int flags, int fd)
{
	void *p = mmap(NULL, some_bytes(), prot, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* --- a transfer through the region under test ----------------------------- */

/*
 * Rank 0 has the region under test, rank 1 a peer of the same shape: one row
 * of i32, one block, produced by arming.
 */
struct lane {
	struct world w;
	struct part *part[2];
	__u64 generation;
	__u32 peer;
	__u32 *peer_memory;
	size_t bytes;
};

static int lane_open(struct lane *lane)
{
	int ret = world_open(&lane->w, 2);

	if (ret)
		return ret;
	lane->part[0] = calloc(2, sizeof(struct part));
	lane->part[1] = lane->part[0] + 1;
	lane->peer_memory = map(PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1);
	return lane->peer_memory ? 0 : -ENOMEM;
}

static void lane_close(struct lane *lane)
{
	world_close(&lane->w);
	munmap(lane->peer_memory, some_bytes());
	free(lane->part[0]);
}

/* @to: the rank that copies from the other one. */
static int lane_plan(struct lane *lane, __u32 region, size_t bytes, __u32 to)
{
	__u32 cols = (__u32)(bytes / sizeof(__u32));
	int ret;

	lane->bytes = bytes;
	ret = region_add(lane->w.member[1], lane->peer_memory, T3_DTYPE_I32, 1,
			 bytes, &lane->peer);
	if (ret)
		return ret;
	lane->generation++;
	FOR_EACH(r, 2) {
		struct part *part = lane->part[r];

		part_init(part, 0, lane->generation);
		part_region(part, r ? lane->peer : region, 1, cols, 1, 1);
		part->block[0].readers = 3;
		if (r != to)
			part_produced(part, 0, 0, 0);
	}
	part_trigger(lane->part[to], T3_OP_COPY, 0, 0, 1);
	part_source(lane->part[to], !to, 0, 0, 1);
	return world_plan(&lane->w, lane->part, NULL);
}

static int lane_arm(struct lane *lane)
{
	int ret = plan_arm(lane->w.member[0], 0);

	return ret < 0 ? ret : plan_arm(lane->w.member[1], 0);
}

static int lane_wait(struct lane *lane, __u32 epoch)
{
	int ret = plan_wait_epoch(lane->w.member[0], 0, epoch, BOUND_NS, NULL);

	return ret ? ret : plan_wait_epoch(lane->w.member[1], 0, epoch,
					   BOUND_NS, NULL);
}

static int lane_unplan(struct lane *lane)
{
	int ret = plan_del(lane->w.member[0], 0);

	if (!ret)
		ret = plan_del(lane->w.member[1], 0);
	if (!ret)
		ret = region_del(lane->w.member[1], lane->peer);
	return ret;
}

static void pattern(__u32 *at, size_t bytes, __u32 seed)
{
	FOR_EACH(i, bytes / sizeof(*at))
		at[i] = seed + i * 2654435761u;
}

static int run_once(struct lane *lane)
{
	int epoch = lane_arm(lane);

	return epoch < 0 ? epoch : lane_wait(lane, (__u32)epoch);
}

/* Returns 0 where exactly what is in @memory has arrived at the peer. */
static int as_source(struct lane *lane, __u32 region, const void *memory,
		     size_t bytes)
{
	int ret = lane_plan(lane, region, bytes, 1);

	memset(lane->peer_memory, 0xee, some_bytes());
	if (!ret)
		ret = run_once(lane);
	if (!ret && memcmp(lane->peer_memory, memory, bytes))
		ret = -EILSEQ;
	if (!ret && bytes < some_bytes() &&
	    ((unsigned char *)lane->peer_memory)[bytes] != 0xee)
		ret = -EOVERFLOW;
	return ret ? ret : lane_unplan(lane);
}

static int as_destination(struct lane *lane, __u32 region, void *memory,
			  size_t bytes)
{
	int ret = lane_plan(lane, region, bytes, 0);

	memset(memory, 0xee, bytes);
	pattern(lane->peer_memory, bytes, 77);
	if (!ret)
		ret = run_once(lane);
	if (!ret && memcmp(lane->peer_memory, memory, bytes))
		ret = -EILSEQ;
	return ret ? ret : lane_unplan(lane);
}

/* --- kinds of memory ------------------------------------------------------- */

static void *anon(void)
{
	return map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void *anon_touched(void)
{
	void *p = anon();

	if (p)
		memset(p, 1, some_bytes());
	return p;
}

static void *anon_shared(void)
{
	return map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

static int memfd(unsigned int flags)
{
	int fd = (int)syscall(SYS_memfd_create, "t3", MFD_CLOEXEC | flags);

	if (fd >= 0 && ftruncate(fd, flags & MFD_HUGETLB ? 2 << 20 :
				 (off_t)some_bytes()))
		return -1;
	return fd;
}

static void *memfd_shared(void)
{
	return map(PROT_READ | PROT_WRITE, MAP_SHARED, memfd(0));
}

static void *shm_file(void)
{
	int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)some_bytes()))
		return NULL;
	return map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
}

static void *sysv_shm(void)
{
	int id = shmget(IPC_PRIVATE, some_bytes(), IPC_CREAT | 0600);
	void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return p == (void *)-1 ? NULL : p;
}

static void *heap(void)
{
	return sbrk((intptr_t)(2 * some_bytes())) == (void *)-1 ? NULL :
	       (void *)(((uintptr_t)sbrk(0) - some_bytes()) &
			~(uintptr_t)(page_size() - 1));
}

static void *huge_transparent(void)
{
	char *p = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if ((void *)p == MAP_FAILED)
		return NULL;
	madvise(p, 4 << 20, MADV_HUGEPAGE);
	p = (char *)(((uintptr_t)p + (2 << 20) - 1) & ~((uintptr_t)(2 << 20) - 1));
	memset(p, 1, 2 << 20);
	return p + (1 << 20);
}

/* Asks for pages; where there are none the test is skipped. */
static void *hugetlb(void)
{
	int fd = open("/proc/sys/vm/nr_hugepages", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "4", 1) < 0)
			perror("# nr_hugepages");
		close(fd);
	}
	return map(PROT_READ | PROT_WRITE, MAP_SHARED, memfd(MFD_HUGETLB));
}

static void *dev_zero_shared(void)
{
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	return fd < 0 ? NULL : map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
}

static void *dev_zero_private(void)
{
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	return fd < 0 ? NULL : map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
}

/* A file of a file system that is not shmem: ramfs, in a mount of our own. */
static int ramfs_file(void)
{
	int fd;

	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("t3", "/tmp", "ramfs", 0, NULL))
		return -1;
	fd = open("/tmp/file", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	return fd >= 0 && !ftruncate(fd, (off_t)some_bytes()) ? fd : -1;
}

static void *file_shared(void)
{
	int fd = ramfs_file();

	return fd < 0 ? NULL : map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
}

static void *file_private(void)
{
	int fd = ramfs_file();
	void *p;

	if (fd < 0)
		return NULL;
	p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	/* anonymous pages by now, but the mapping is a file's */
	if (p)
		memset(p, 1, some_bytes());
	return p;
}

static void *dev_mem(void)
{
	int fd = open("/dev/mem", O_RDWR | O_CLOEXEC);
	void *p;

	if (fd < 0)
		return NULL;
	p = mmap(NULL, some_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		 0xf0000);
	return p == MAP_FAILED ? NULL : p;
}

/* A mapping of the kernel's that each process has. */
static void *special(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long begin, at = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%lx", &begin) == 1)
			at = begin;
	if (f)
		fclose(f);
	return (void *)at;
}

static void *vvar_page(void)
{
	return special("[vvar]");
}

static void *vdso_page(void)
{
	return special("[vdso]");
}

static void *missing_pages(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *p = anon();
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	reg.range.start = (uintptr_t)p;
	reg.range.len = some_bytes();
	if (!p || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg))
		return NULL;
	return p;
}

static void *read_only_anon(void)
{
	void *p = anon_touched();

	if (p && mprotect(p, some_bytes(), PROT_READ))
		return NULL;
	return p;
}

static void *read_only_shmem(void)
{
	int fd = memfd(0);
	__u32 *p = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	if (!p)
		return NULL;
	pattern(p, some_bytes(), 5);
	munmap(p, some_bytes());
	return map(PROT_READ, MAP_SHARED, fd);
}

/* A descriptor that may only be read: no way to write there at all. */
static void *sealed_shmem(void)
{
	int fd = memfd(MFD_ALLOW_SEALING);

	if (fd < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE))
		return NULL;
	return map(PROT_READ, MAP_SHARED, fd);
}

static void *no_rights(void)
{
	return map(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void *unmapped(void)
{
	void *p = anon();

	if (p)
		munmap(p, some_bytes());
	return p;
}

static void *half_mapped(void)
{
	char *p = anon();

	if (p)
		munmap(p + 2 * page_size(), page_size());
	return p;
}

static void *half_file(void)
{
	char *p = anon();
	int fd = ramfs_file();

	if (!p || fd < 0)
		return NULL;
	return mmap(p + 2 * page_size(), page_size(), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ? NULL : p;
}

static void *half_read_only(void)
{
	char *p = anon_touched();

	if (p && mprotect(p + page_size(), page_size(), PROT_READ))
		return NULL;
	return p;
}

static void *two_mappings(void)
{
	char *p = anon();

	/* another mapping by its flags, which can't be merged */
	if (p && madvise(p + page_size(), page_size(), MADV_DONTFORK))
		return NULL;
	return p;
}

static void *kernel_memory(void)
{
	return (void *)0xffff888000000000;
}

static void *vsyscall(void)
{
	return (void *)0xffffffffff600000;
}

FIXTURE(kind) {
	struct lane lane;
	int member;
	long pinned;
};

/* @also: another errno that is right; @or_taken: and success is right too */
FIXTURE_VARIANT(kind) {
	void *(*make)(void);
	__u32 flags;
	int error;
	int also;
	bool or_taken;
};

FIXTURE_VARIANT_ADD(kind, anon) { .make = anon };
FIXTURE_VARIANT_ADD(kind, anon_touched) { .make = anon_touched };
FIXTURE_VARIANT_ADD(kind, anon_shared) { .make = anon_shared };
FIXTURE_VARIANT_ADD(kind, memfd_shared) { .make = memfd_shared };
FIXTURE_VARIANT_ADD(kind, shm_file) { .make = shm_file };
FIXTURE_VARIANT_ADD(kind, sysv_shm) { .make = sysv_shm };
FIXTURE_VARIANT_ADD(kind, heap) { .make = heap };
FIXTURE_VARIANT_ADD(kind, huge_transparent) { .make = huge_transparent };
FIXTURE_VARIANT_ADD(kind, hugetlb) { .make = hugetlb };
FIXTURE_VARIANT_ADD(kind, dev_zero_shared) { .make = dev_zero_shared };
FIXTURE_VARIANT_ADD(kind, two_mappings) { .make = two_mappings };
FIXTURE_VARIANT_ADD(kind, read_only_shmem) {
	.make = read_only_shmem, .flags = T3_REGION_READ_ONLY,
};

FIXTURE_VARIANT_ADD(kind, sealed_shmem) {
	.make = sealed_shmem, .flags = T3_REGION_READ_ONLY,
};

FIXTURE_VARIANT_ADD(kind, writable_as_read_only) {
	.make = anon_touched, .flags = T3_REGION_READ_ONLY,
};

/* Anonymous memory, made through a file of a device: the ABI leaves it open. */
FIXTURE_VARIANT_ADD(kind, dev_zero_private) {
	.make = dev_zero_private, .error = EMEDIUMTYPE, .or_taken = true,
};

/* Could be pinned for reading, but would then break on the next write. */
FIXTURE_VARIANT_ADD(kind, read_only_anon_as_read_only) {
	.make = read_only_anon, .flags = T3_REGION_READ_ONLY, .error = EFAULT,
	.or_taken = true,
};

FIXTURE_VARIANT_ADD(kind, read_only_anon) {
	.make = read_only_anon, .error = EFAULT,
};

FIXTURE_VARIANT_ADD(kind, read_only_shmem_for_writing) {
	.make = read_only_shmem, .error = EFAULT,
};

FIXTURE_VARIANT_ADD(kind, file_shared) {
	.make = file_shared, .error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, file_private) {
	.make = file_private, .error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, file_as_read_only) {
	.make = file_shared, .flags = T3_REGION_READ_ONLY,
	.error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, half_file) {
	.make = half_file, .error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, dev_mem) {
	.make = dev_mem, .error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, vvar) {
	.make = vvar_page, .flags = T3_REGION_READ_ONLY,
	.error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, vdso) {
	.make = vdso_page, .flags = T3_REGION_READ_ONLY,
	.error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, missing_pages) {
	.make = missing_pages, .error = EMEDIUMTYPE,
};

FIXTURE_VARIANT_ADD(kind, no_rights) {
	.make = no_rights, .error = EFAULT,
};

FIXTURE_VARIANT_ADD(kind, unmapped) {
	.make = unmapped, .error = EFAULT,
};

FIXTURE_VARIANT_ADD(kind, half_mapped) {
	.make = half_mapped, .error = EFAULT,
};

FIXTURE_VARIANT_ADD(kind, half_read_only) {
	.make = half_read_only, .error = EFAULT,
};

FIXTURE_VARIANT_ADD(kind, kernel_memory) {
	.make = kernel_memory, .error = EFAULT, .also = ERANGE,
};

FIXTURE_VARIANT_ADD(kind, vsyscall) {
	.make = vsyscall, .flags = T3_REGION_READ_ONLY,
	.error = EFAULT, .also = ERANGE,
};

FIXTURE_SETUP(kind)
{
	ASSERT_EQ(0, lane_open(&self->lane));
	self->member = self->lane.w.member[0];
	self->pinned = vm_pin();
}

FIXTURE_TEARDOWN(kind)
{
	lane_close(&self->lane);
	EXPECT_EQ(self->pinned, vm_pin());
}

static int add_kind(int member, const void *memory, __u32 flags, size_t bytes,
		    __u32 *region)
{
	struct t3_region_add how = {
		.flags = flags, .type = T3_REGION_USER, .dtype = T3_DTYPE_I32,
		.base = (uintptr_t)memory, .row_bytes = bytes,
		.row_stride = bytes, .rows = 1,
	};

	return region_add_full(member, &how, region);
}

TEST_F(kind, register_and_use)
{
	bool writable = !(variant->flags & T3_REGION_READ_ONLY);
	void *memory = variant->make();
	__u32 region;
	int ret;

	if (!memory)
		SKIP(return, "no such memory here: %s", strerror(errno));
	ret = add_kind(self->member, memory, variant->flags, some_bytes(),
		       &region);
	if (variant->error && !(variant->or_taken && !ret)) {
		EXPECT_TRUE(ret == -variant->error ||
			    (variant->also && ret == -variant->also))
			TH_LOG("errno %d, want %d", -ret, variant->error);
		EXPECT_EQ(self->pinned, vm_pin());
		return;
	}
	ASSERT_EQ(0, ret);
	EXPECT_GE(vm_pin(), self->pinned + (long)(some_bytes() / 1024));
	if (writable)
		pattern(memory, some_bytes(), 3);
	EXPECT_EQ(0, as_source(&self->lane, region, memory, some_bytes()));
	if (writable) {
		EXPECT_EQ(0, as_destination(&self->lane, region, memory,
					    some_bytes()));
	}
	EXPECT_EQ(0, region_del(self->member, region));
	EXPECT_EQ(self->pinned, vm_pin());
}

/* --- shapes ---------------------------------------------------------------- */

FIXTURE(shape) {
	struct lane lane;
	int member;
	char *memory;
	long pinned;
};

FIXTURE_SETUP(shape)
{
	ASSERT_EQ(0, lane_open(&self->lane));
	self->member = self->lane.w.member[0];
	self->memory = anon();
	ASSERT_NE(NULL, self->memory);
	self->pinned = vm_pin();
}

FIXTURE_TEARDOWN(shape)
{
	lane_close(&self->lane);
	EXPECT_EQ(self->pinned, vm_pin());
}

static struct t3_region_add right_shape(const char *memory)
{
	return (struct t3_region_add) {
		.type = T3_REGION_USER, .dtype = T3_DTYPE_F32,
		.base = (uintptr_t)memory, .row_bytes = 256,
		.row_stride = 512, .rows = 8,
	};
}

#define EXPECT_ADD(result, field, value) do {				\
	struct t3_region_add how = right_shape(self->memory);		\
	__u32 region;							\
									\
	how.field = value;						\
	EXPECT_EQ(result, region_add_full(self->member, &how, &region))	\
		TH_LOG(#field " = " #value);				\
	EXPECT_EQ(self->pinned, vm_pin());				\
} while (0)

TEST_F(shape, type_and_dtype)
{
	EXPECT_ADD(-EOPNOTSUPP, type, 0);
	/* no descriptor, and 0 is none of a dma-buf */
	EXPECT_ADD(-EBADF, type, T3_REGION_DMABUF);
	EXPECT_ADD(-EOPNOTSUPP, type, 3);
	EXPECT_ADD(-EOPNOTSUPP, fd, 1);
	EXPECT_ADD(-EOPNOTSUPP, fd, -1);
	EXPECT_ADD(-EOPNOTSUPP, __reserved, 1);
	EXPECT_ADD(-EOPNOTSUPP, type, 0xffffffff);
	EXPECT_ADD(-EINVAL, dtype, 0);
	EXPECT_ADD(-EINVAL, dtype, T3_DTYPE_COUNT + 1);
	EXPECT_ADD(-EINVAL, dtype, 0xffffffff);
}

TEST_F(shape, out_of_range)
{
	EXPECT_ADD(-ERANGE, rows, 0);
	EXPECT_ADD(-ERANGE, rows, 0x80000000);
	EXPECT_ADD(-ERANGE, rows, 0xffffffff);
	EXPECT_ADD(-ERANGE, row_bytes, 0);
	/* more than the stride */
	EXPECT_ADD(-ERANGE, row_bytes, 516);
	EXPECT_ADD(-ERANGE, row_stride, 252);
	EXPECT_ADD(-ERANGE, row_stride, 0);
	/* wraps, or ends beyond all addresses */
	EXPECT_ADD(-ERANGE, row_stride, 1ULL << 63);
	EXPECT_ADD(-ERANGE, row_stride, 1ULL << 61);
	EXPECT_ADD(-ERANGE, row_stride, 0xfffffffffffffffcULL);
	EXPECT_ADD(-ERANGE, base, 0xfffffffffffffffcULL);
	EXPECT_ADD(-ERANGE, base, 0xfffffffffffff000ULL);
}

TEST_F(shape, rows_of_too_many_elements)
{
	struct t3_region_add how = right_shape(self->memory);
	__u32 region;

	how.rows = 1;
	how.row_bytes = (1ULL << 31) * sizeof(float);
	how.row_stride = how.row_bytes;
	EXPECT_EQ(-ERANGE, region_add_full(self->member, &how, &region));
	how.row_bytes = 0xfffffffffffffffcULL;
	how.row_stride = how.row_bytes;
	EXPECT_EQ(-ERANGE, region_add_full(self->member, &how, &region));
}

TEST_F(shape, alignment)
{
	const __u32 dtypes[] = { T3_DTYPE_F32, T3_DTYPE_F64, T3_DTYPE_F16,
				 T3_DTYPE_BF16, T3_DTYPE_I32 };

	FOR_EACH(i, ARRAY_SIZE(dtypes)) {
		struct t3_region_add good = right_shape(self->memory), how;
		size_t element = dtype_bytes(dtypes[i]);
		__u32 region;

		good.dtype = dtypes[i];
		FOR_EACH(off, element) {
			int want = off ? -EDOM : 0;

			how = good;
			how.base += off;
			EXPECT_EQ(want, region_add_full(self->member, &how,
							&region));
			how = good;
			how.row_bytes -= off;
			EXPECT_EQ(want, region_add_full(self->member, &how,
							&region));
			how = good;
			how.row_stride += off;
			EXPECT_EQ(want, region_add_full(self->member, &how,
							&region));
		}
		FOR_EACH(r, 3) {
			EXPECT_EQ(0, region_del(self->member, r));
		}
	}
}

/* Where the first element lies in its page and how many bytes follow. */
FIXTURE(place) {
	struct lane lane;
	long pinned;
};

FIXTURE_VARIANT(place) {
	size_t offset;
	size_t bytes;
	size_t pages;
};

FIXTURE_VARIANT_ADD(place, one_element) {
	.offset = 0, .bytes = 4, .pages = 1,
};

FIXTURE_VARIANT_ADD(place, middle_of_a_page) {
	.offset = 1236, .bytes = 1028, .pages = 1,
};

FIXTURE_VARIANT_ADD(place, last_element_of_a_page) {
	.offset = 4092, .bytes = 4, .pages = 1,
};

FIXTURE_VARIANT_ADD(place, one_element_in_each_of_two_pages) {
	.offset = 4092, .bytes = 8, .pages = 2,
};

FIXTURE_VARIANT_ADD(place, a_page_but_not_aligned) {
	.offset = 4, .bytes = 4096, .pages = 2,
};

FIXTURE_VARIANT_ADD(place, a_page) {
	.offset = 4096, .bytes = 4096, .pages = 1,
};

FIXTURE_VARIANT_ADD(place, three_of_which_two_in_part) {
	.offset = 4000, .bytes = 4292, .pages = 3,
};

FIXTURE_SETUP(place)
{
	if (page_size() != 4096)
		SKIP(return, "pages of %zu bytes", page_size());
	ASSERT_EQ(0, lane_open(&self->lane));
	self->pinned = vm_pin();
}

FIXTURE_TEARDOWN(place)
{
	lane_close(&self->lane);
}

/* What lies around it is not touched, and only its own pages are pinned. */
TEST_F(place, exact)
{
	unsigned char *memory = anon();
	__u32 region;
	void *base = memory + variant->offset;

	ASSERT_NE(NULL, memory);
	memset(memory, 0xcc, some_bytes());
	ASSERT_EQ(0, region_add(self->lane.w.member[0], base, T3_DTYPE_I32, 1,
				variant->bytes, &region));
	EXPECT_EQ(self->pinned + (long)variant->pages * 4, vm_pin());
	pattern(base, variant->bytes, 9);
	EXPECT_EQ(0, as_source(&self->lane, region, base, variant->bytes));
	EXPECT_EQ(0, as_destination(&self->lane, region, base, variant->bytes));
	FOR_EACH(i, some_bytes()) {
		if (i < variant->offset ||
		    i >= variant->offset + variant->bytes) {
			ASSERT_EQ(0xcc, memory[i]) TH_LOG("byte %u", i);
		}
	}
	EXPECT_EQ(0, region_del(self->lane.w.member[0], region));
	EXPECT_EQ(self->pinned, vm_pin());
}

/* Two in one page, the same bytes twice, overlapping by a part. */
TEST_F(shape, overlapping)
{
	const struct { size_t offset, bytes; } places[] = {
		{ 0, 512 }, { 512, 512 }, { 0, 512 }, { 256, 512 },
		{ 0, 2 * 4096 }, { 4096 - 64, 128 },
	};
	__u32 region[ARRAY_SIZE(places)];

	FOR_EACH(i, ARRAY_SIZE(places)) {
		ASSERT_EQ(0, region_add(self->member,
					self->memory + places[i].offset,
					T3_DTYPE_I32, 1, places[i].bytes,
					&region[i]));
		FOR_EACH(j, i) {
			EXPECT_NE(region[j], region[i]);
		}
	}
	pattern((void *)self->memory, some_bytes(), 12);
	FOR_EACH(i, ARRAY_SIZE(places)) {
		EXPECT_EQ(0, as_source(&self->lane, region[i],
				       self->memory + places[i].offset,
				       places[i].bytes));
		/* the others stay when one goes */
		EXPECT_EQ(0, region_del(self->member, region[i]));
	}
}

/* Nothing behind the last row's last element is needed. */
TEST_F(shape, last_row_ends_with_the_mapping)
{
	struct t3_region_add how = right_shape(self->memory);
	__u32 region;

	how.row_bytes = page_size();
	how.row_stride = 2 * page_size();
	how.rows = 2;
	ASSERT_EQ(0, munmap(self->memory + 3 * page_size(), page_size()));
	EXPECT_EQ(0, region_add_full(self->member, &how, &region));
	how.row_bytes += 4;
	EXPECT_EQ(-EFAULT, region_add_full(self->member, &how, &region));
}

TEST_F(shape, too_many)
{
	struct t3_query query;
	__u32 region, last = 0, n = 0;
	int ret;

	ASSERT_EQ(0, device_query(self->lane.w.dev, &query));
	while (!(ret = region_add(self->member, self->memory, T3_DTYPE_I32, 1,
				  4, &region)) && n <= query.max_regions) {
		last = region;
		n++;
	}
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(query.max_regions, n);
	EXPECT_EQ(0, region_del(self->member, last));
	EXPECT_EQ(0, region_add(self->member, self->memory, T3_DTYPE_I32, 1, 4,
				&region));
}

/* t3's own mapping is no memory for a region. */
TEST_F(shape, own_mapping)
{
	__u32 region, *tiles;

	ASSERT_EQ(0, region_add(self->member, self->memory, T3_DTYPE_I32, 1, 64,
				&region));
	ASSERT_EQ(0, lane_plan(&self->lane, region, 64, 1));
	tiles = part_map_tiles(self->member, self->lane.part[0]);
	ASSERT_NE(MAP_FAILED, (void *)tiles);
	EXPECT_EQ(-EMEDIUMTYPE, region_add(self->member, tiles, T3_DTYPE_I32, 1,
					   4, &region));
	/* a mapping holds the member */
	munmap(tiles, self->lane.part[0]->add.tiles_bytes);
}

/* --- the account ------------------------------------------------------------ */

FIXTURE(account) {
	struct world w;
	char *memory;
	long pinned;
};

/* An ordinary user, who may pin PAGES pages. */
FIXTURE_SETUP(account)
{
	struct rlimit limit = { some_bytes(), some_bytes() };

	self->memory = mmap(NULL, 2 * some_bytes(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->memory);
	ASSERT_EQ(0, world_open(&self->w, 2));
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	if (!geteuid()) {
		ASSERT_EQ(0, setresgid(1000, 1000, 1000));
		ASSERT_EQ(0, setresuid(1000, 1000, 1000));
	}
	self->pinned = vm_pin();
}

FIXTURE_TEARDOWN(account)
{
	world_close(&self->w);
}

static int add_pages(struct world *w, __u32 rank, char *memory, size_t pages,
		     __u32 *region)
{
	return region_add(w->member[rank], memory, T3_DTYPE_I32, 1,
			  pages * page_size(), region);
}

static long kb(size_t pages)
{
	return (long)(pages * page_size() / 1024);
}

TEST_F(account, exact_limit)
{
	__u32 a, b;

	EXPECT_EQ(-EDQUOT, add_pages(&self->w, 0, self->memory, PAGES + 1, &a));
	EXPECT_EQ(self->pinned, vm_pin());
	ASSERT_EQ(0, add_pages(&self->w, 0, self->memory, PAGES - 1, &a));
	EXPECT_EQ(self->pinned + kb(PAGES - 1), vm_pin());
	EXPECT_EQ(-EDQUOT, add_pages(&self->w, 0,
				     self->memory + some_bytes(), 2, &b));
	ASSERT_EQ(0, add_pages(&self->w, 0, self->memory + some_bytes(), 1,
			       &b));
	EXPECT_EQ(self->pinned + kb(PAGES), vm_pin());
	/* one element is one page */
	EXPECT_EQ(-EDQUOT, region_add(self->w.member[0],
				      self->memory + some_bytes() +
				      page_size(), T3_DTYPE_I32, 1, 4, &b));
	EXPECT_EQ(0, region_del(self->w.member[0], a));
	EXPECT_EQ(self->pinned + kb(1), vm_pin());
	EXPECT_EQ(0, add_pages(&self->w, 0, self->memory, PAGES - 1, &a));
}

/* The limit is the user's, not each member's. */
TEST_F(account, two_members)
{
	__u32 a;

	ASSERT_EQ(0, add_pages(&self->w, 0, self->memory, PAGES, &a));
	EXPECT_EQ(-EDQUOT, add_pages(&self->w, 1, self->memory + some_bytes(),
				     1, &a));
	/* given back before close() returns */
	close(self->w.member[0]);
	self->w.member[0] = -1;
	EXPECT_EQ(self->pinned, vm_pin());
	EXPECT_EQ(0, add_pages(&self->w, 1, self->memory, PAGES, &a));
	EXPECT_EQ(0, member_leave(self->w.member[1]));
	EXPECT_EQ(self->pinned, vm_pin());
}

/* Memory that is unmapped meanwhile is still charged once, and given back. */
TEST_F(account, unmapped_meanwhile)
{
	__u32 a;

	FOR_EACH(i, 3) {
		char *memory = anon();

		ASSERT_EQ(0, add_pages(&self->w, 0, memory, PAGES, &a));
		munmap(memory, some_bytes());
		EXPECT_EQ(0, region_del(self->w.member[0], a));
		EXPECT_EQ(self->pinned, vm_pin());
	}
}

/* A child inherits nothing that is pinned, and its end gives nothing back. */
TEST_F(account, fork)
{
	__u32 a;
	pid_t pid;

	ASSERT_EQ(0, add_pages(&self->w, 0, self->memory, PAGES, &a));
	pid = fork_child();
	if (!pid) {
		MUST(vm_pin() == 0);
		close(self->w.member[0]);
		_exit(0);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(self->pinned + kb(PAGES), vm_pin());
	EXPECT_EQ(0, region_del(self->w.member[0], a));
	EXPECT_EQ(self->pinned, vm_pin());
}

/* A half-refused region, whose first pages can be pinned, pins nothing. */
TEST_F(account, refused)
{
	__u32 a;

	munmap(self->memory + 3 * page_size(), page_size());
	EXPECT_EQ(-EFAULT, add_pages(&self->w, 0, self->memory, PAGES, &a));
	EXPECT_EQ(self->pinned, vm_pin());
	EXPECT_EQ(0, add_pages(&self->w, 0, self->memory + some_bytes(), PAGES,
			       &a));
}

/* --- memory that changes ----------------------------------------------------- */

FIXTURE(change) {
	struct lane lane;
	int member;
	char *memory;
	__u32 region;
	int fd;
};

FIXTURE_VARIANT(change) {
	bool shmem;
};

FIXTURE_VARIANT_ADD(change, anon) { .shmem = false };
FIXTURE_VARIANT_ADD(change, memfd) { .shmem = true };

FIXTURE_SETUP(change)
{
	ASSERT_EQ(0, lane_open(&self->lane));
	self->member = self->lane.w.member[0];
	self->fd = variant->shmem ? memfd(0) : -1;
	self->memory = variant->shmem ?
		map(PROT_READ | PROT_WRITE, MAP_SHARED, self->fd) : anon();
	ASSERT_NE(NULL, self->memory);
	ASSERT_EQ(0, region_add(self->member, self->memory, T3_DTYPE_I32, 1,
				some_bytes(), &self->region));
	pattern((void *)self->memory, some_bytes(), 1);
	ASSERT_EQ(0, lane_plan(&self->lane, self->region, some_bytes(), 1));
	ASSERT_EQ(0, run_once(&self->lane));
}

FIXTURE_TEARDOWN(change)
{
	lane_close(&self->lane);
	if (self->fd >= 0)
		close(self->fd);
}

static bool arrived(struct _test_data_change *self)
{
	return !memcmp(self->lane.peer_memory, self->memory, some_bytes());
}

TEST_F(change, unmapped)
{
	ASSERT_EQ(0, munmap(self->memory, some_bytes()));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
	/* it can still be put away */
	EXPECT_EQ(0, plan_del(self->member, 0));
	EXPECT_EQ(0, region_del(self->member, self->region));
	EXPECT_EQ(kb(PAGES), vm_pin()) TH_LOG("the peer's region is left");
}

TEST_F(change, one_page_unmapped)
{
	ASSERT_EQ(0, munmap(self->memory + 2 * page_size(), page_size()));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
}

TEST_F(change, neighbour_unmapped)
{
	/* the pages before and after are nobody's business */
	char *around = mmap(NULL, 3 * page_size(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *mine = around + page_size();
	__u32 region;

	ASSERT_EQ(0, lane_unplan(&self->lane));
	ASSERT_EQ(0, region_add(self->member, mine, T3_DTYPE_I32, 1,
				page_size(), &region));
	ASSERT_EQ(0, munmap(around, page_size()));
	ASSERT_EQ(0, munmap(mine + page_size(), page_size()));
	pattern((void *)mine, page_size(), 8);
	EXPECT_EQ(0, as_source(&self->lane, region, mine, page_size()));
}

TEST_F(change, mapped_anew_at_the_same_place)
{
	ASSERT_EQ(0, munmap(self->memory, some_bytes()));
	ASSERT_EQ(self->memory,
		  mmap(self->memory, some_bytes(), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	pattern((void *)self->memory, some_bytes(), 2);
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
	/* a new registration is right */
	EXPECT_EQ(0, lane_unplan(&self->lane));
	EXPECT_EQ(0, region_del(self->member, self->region));
	ASSERT_EQ(0, region_add(self->member, self->memory, T3_DTYPE_I32, 1,
				some_bytes(), &self->region));
	EXPECT_EQ(0, as_source(&self->lane, self->region, self->memory,
			       some_bytes()));
}

TEST_F(change, mapped_over)
{
	ASSERT_EQ(self->memory + page_size(),
		  mmap(self->memory + page_size(), page_size(),
		       PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
}

TEST_F(change, moved)
{
	char *elsewhere = anon();

	ASSERT_EQ(elsewhere, mremap(self->memory, some_bytes(), some_bytes(),
				    MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
}

TEST_F(change, shrunk)
{
	ASSERT_EQ(self->memory, mremap(self->memory, some_bytes(),
				       some_bytes() - page_size(), 0));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
}

/*
 * The pages go, the mapping stays. What must never happen is a transfer of
 * bytes that the program does not see there; pages of shmem come back.
 */
TEST_F(change, pages_dropped)
{
	int epoch;

	ASSERT_EQ(0, madvise(self->memory, some_bytes(), MADV_DONTNEED));
	pattern((void *)self->memory, some_bytes(), 3);
	epoch = lane_arm(&self->lane);
	if (variant->shmem && epoch > 0) {
		EXPECT_EQ(0, lane_wait(&self->lane, (__u32)epoch));
		EXPECT_TRUE(arrived(self));
	} else {
		EXPECT_EQ(-ESTALE, epoch);
	}
}

TEST_F(change, hole_punched)
{
	ASSERT_EQ(0, madvise(self->memory, some_bytes(),
			     variant->shmem ? MADV_REMOVE : MADV_DONTNEED));
	pattern((void *)self->memory, some_bytes(), 4);
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
}

TEST_F(change, truncated)
{
	if (!variant->shmem)
		SKIP(return, "only a file can be truncated");
	ASSERT_EQ(0, ftruncate(self->fd, 0));
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
	ASSERT_EQ(0, ftruncate(self->fd, (off_t)some_bytes()));
	pattern((void *)self->memory, some_bytes(), 4);
	EXPECT_EQ(-ESTALE, plan_arm(self->member, 0));
}

/* Before, while and after a child shares the pages: the parent's are used. */
TEST_F(change, forked)
{
	pid_t pid = fork_child();

	ASSERT_GE(pid, 0);
	if (!pid) {
		if (!variant->shmem)
			memset(self->memory, 0x77, some_bytes());
		pause();
		_exit(0);
	}
	pattern((void *)self->memory, some_bytes(), 5);
	EXPECT_EQ(0, run_once(&self->lane));
	EXPECT_TRUE(arrived(self));
	kill(pid, SIGKILL);
	reap(pid);
	pattern((void *)self->memory, some_bytes(), 6);
	EXPECT_EQ(0, run_once(&self->lane));
	EXPECT_TRUE(arrived(self));
}

TEST_F(change, forked_while_armed)
{
	int epoch = plan_arm(self->member, 0);
	pid_t pid;

	ASSERT_EQ(2, epoch);
	pid = fork_child();
	if (!pid)
		_exit(0);
	EXPECT_EQ(0, reap(pid));
	/* arming was the production: the data is what it was then */
	ASSERT_EQ(2, plan_arm(self->lane.w.member[1], 0));
	EXPECT_EQ(0, lane_wait(&self->lane, 2));
	EXPECT_TRUE(arrived(self));
}

TEST_F(change, protected_and_back)
{
	ASSERT_EQ(0, mprotect(self->memory, some_bytes(), PROT_READ));
	ASSERT_EQ(0, mprotect(self->memory, some_bytes(),
			      PROT_READ | PROT_WRITE));
	pattern((void *)self->memory, some_bytes(), 7);
	EXPECT_EQ(0, run_once(&self->lane));
	EXPECT_TRUE(arrived(self));
}

TEST_F(change, locked_and_advised)
{
	ASSERT_EQ(0, mlock(self->memory, some_bytes()));
	ASSERT_EQ(0, munlock(self->memory, some_bytes()));
	madvise(self->memory, some_bytes(), MADV_HUGEPAGE);
	madvise(self->memory, some_bytes(), MADV_MERGEABLE);
	madvise(self->memory, some_bytes(), 21 /* MADV_PAGEOUT */);
	pattern((void *)self->memory, some_bytes(), 8);
	EXPECT_EQ(0, run_once(&self->lane));
	EXPECT_TRUE(arrived(self));
}

/* The peer's copy was not made yet: it may not be made of other memory. */
TEST_F(change, unmapped_while_armed)
{
	struct t3_group_info info;
	__u32 rank = 99;
	int ret;

	ASSERT_EQ(2, plan_arm(self->member, 0));
	ASSERT_EQ(0, munmap(self->memory, some_bytes()));
	/* noticed by whoever comes first: this arm, or an end of the epoch */
	ret = plan_arm(self->lane.w.member[1], 0);
	if (ret == 2)
		ret = plan_wait_epoch(self->lane.w.member[1], 0, 2, BOUND_NS,
				      &rank);
	if (!ret)
		ret = plan_wait_epoch(self->member, 0, 2, BOUND_NS, &rank);
	EXPECT_EQ(-ESTALE, ret);
	ASSERT_EQ(0, group_info(self->lane.w.group, &info));
	EXPECT_EQ((__u32)ESTALE, info.broken);
	EXPECT_EQ(0U, info.broken_rank);
	EXPECT_EQ(0U, info.broken_slot);
}

/* A stale region that no plan uses yet is refused at its use. */
TEST_F(change, used_after_it_went_stale)
{
	int ret;

	ASSERT_EQ(0, lane_unplan(&self->lane));
	ASSERT_EQ(0, munmap(self->memory, some_bytes()));
	ret = lane_plan(&self->lane, self->region, some_bytes(), 1);
	EXPECT_EQ(-ESTALE, ret ? ret : plan_arm(self->member, 0));
}

TEST_HARNESS_MAIN
