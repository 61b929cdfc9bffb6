// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The gpu engine's plug-in: compiled once against CUDA and once against HIP.
 */
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <unistd.h>

#include "kernels.cuh"

/**
 * struct t3_gpu_device - a GPU, for one member
 * @number: the runtime's
 * @granule: of mapped memory
 * @stream: for what is waited for at once; guarded by @lock
 * @lock: one at a time
 */
struct t3_gpu_device {
	int number;
	size_t granule;
	GPU(Stream_t) stream;
	std::mutex lock;
};

static thread_local char sentence[256];

static int fail(int error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return -error;
}

static const char *plugin_error(void)
{
	return sentence;
}

static int check(GPU(Error_t) e, const char *call)
{
	if (e == GPU(Success))
		return 0;
	/* Not to be found by the user's next look. */
	(void)GPU(GetLastError)();
	return fail(e == GPU(ErrorMemoryAllocation) ? ENOMEM : EIO, "%s: %s",
		    call, GPU(GetErrorString)(e));
}

#ifndef T3_GPU_HIP
static int check(CUresult e, const char *call)
{
	const char *text = NULL;

	if (e == CUDA_SUCCESS)
		return 0;
	cuGetErrorString(e, &text);
	return fail(e == CUDA_ERROR_OUT_OF_MEMORY ? ENOMEM : EIO, "%s: %s",
		    call, text ? text : "unknown error");
}
#endif

#define CHECK(call)	check(call, #call)

/* A member's GPU is the thread's while this lives; then the former is again. */
class current {
	int before;
	bool other;

public:
	explicit current(const struct t3_gpu_device *d) : before(0), other(false)
	{
		if (GPU(GetDevice)(&before) != GPU(Success) ||
		    before != d->number)
			other = GPU(SetDevice)(d->number) == GPU(Success);
	}

	~current()
	{
		if (other)
			(void)GPU(SetDevice)(before);
	}

	current(const current &) = delete;
	current &operator=(const current &) = delete;
};

/*
 * Streams that wait need hardware queues of their own. It takes effect where no
 * context has been made yet.
 */
__attribute__((constructor)) static void ask_for_queues(void)
{
#ifdef T3_GPU_HIP
	setenv("GPU_MAX_HW_QUEUES", "32", 0);
#else
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
#endif
}

/* ---- is it there ---- */

static int plugin_probe(char *why, size_t bytes)
{
	int count = 0, waits = 1, device = 0;
	GPU(Error_t) e = GPU(GetDeviceCount)(&count);

	if (e != GPU(Success) || !count) {
		(void)GPU(GetLastError)();
		snprintf(why, bytes, "%s has no GPU: %s", GPU_NAME,
			 e == GPU(Success) ? "none is there" :
					     GPU(GetErrorString)(e));
		return -ENODEV;
	}
	if (GPU(GetDevice)(&device) != GPU(Success))
		device = 0;
#ifdef T3_GPU_HIP
	(void)hipDeviceGetAttribute(&waits, hipDeviceAttributeCanUseStreamWaitValue,
				    device);
#endif
	if (!waits) {
		snprintf(why, bytes, "%s: GPU %d can't wait for words on streams",
			 GPU_NAME, device);
		return -ENODEV;
	}
	snprintf(why, bytes, "%s, GPU %d of %d", GPU_NAME, device, count);
	return 0;
}

/* ---- memory ---- */

static gpu_mem_prop prop_of(int device)
{
	gpu_mem_prop prop = {};

	prop.type = GPU_MEM_PINNED;
	prop.location.type = GPU_MEM_DEVICE;
	prop.location.id = device;
	prop.gpu_mem_handle_types = GPU_MEM_FD;
	return prop;
}

/* This GPU, and all of this process that can reach the memory's. */
static int let_access(struct t3_gpu_device *d, gpu_address at, uint64_t bytes,
		      bool imported)
{
	gpu_mem_access access = {};
	int count = 0, ret;

	access.location.type = GPU_MEM_DEVICE;
	access.location.id = d->number;
	access.flags = GPU_MEM_READ_WRITE;
	ret = CHECK(VMM(MemSetAccess)(at, bytes, &access, 1));
	if (ret || imported || GPU(GetDeviceCount)(&count) != GPU(Success))
		return ret;
	for (int other = 0; other < count; other++) {
		int can = 0;

		if (other == d->number ||
		    GPU(DeviceCanAccessPeer)(&can, other, d->number) !=
			    GPU(Success) || !can)
			continue;
		access.location.id = other;
		/* Where that fails, the pair's test says so. */
		(void)VMM(MemSetAccess)(at, bytes, &access, 1);
	}
	return 0;
}

/* Give a handle an address, and give the handle up: the mapping keeps it. */
static int map_handle(struct t3_gpu_device *d, gpu_mem_handle handle,
		      struct t3_gpu_memory *memory, bool imported)
{
	gpu_address at = 0;
	int ret = CHECK(VMM(MemAddressReserve)(&at, memory->bytes, d->granule,
					       0, 0));

	if (ret)
		goto out_handle;
	ret = CHECK(VMM(MemMap)(at, memory->bytes, 0, handle, 0));
	if (ret)
		goto out_address;
	ret = let_access(d, at, memory->bytes, imported);
	if (ret)
		goto out_map;
	(void)VMM(MemRelease)(handle);
	memory->address = (void *)at;
	return 0;

out_map:
	(void)VMM(MemUnmap)(at, memory->bytes);
out_address:
	(void)VMM(MemAddressFree)(at, memory->bytes);
out_handle:
	(void)VMM(MemRelease)(handle);
	return ret;
}

static void plugin_unimport(struct t3_gpu_device *d,
			    struct t3_gpu_memory *memory)
{
	current c(d);
	gpu_address at = (gpu_address)memory->address;

	if (!memory->address)
		return;
	(void)VMM(MemUnmap)(at, memory->bytes);
	(void)VMM(MemAddressFree)(at, memory->bytes);
	memory->address = NULL;
}

static void plugin_free(struct t3_gpu_device *d, struct t3_gpu_memory *memory)
{
	plugin_unimport(d, memory);
	if (memory->fd >= 0)
		close(memory->fd);
	memory->fd = -1;
}

static int plugin_alloc(struct t3_gpu_device *d, uint64_t bytes,
			struct t3_gpu_memory *memory)
{
	current c(d);
	gpu_mem_prop prop = prop_of(d->number);
	gpu_mem_handle handle;
	int ret;

	memory->address = NULL;
	memory->fd = -1;
	memory->bytes = (bytes + d->granule - 1) / d->granule * d->granule;
	ret = CHECK(VMM(MemCreate)(&handle, memory->bytes, &prop, 0));
	if (ret)
		return ret;
	ret = CHECK(VMM(MemExportToShareableHandle)(&memory->fd, handle,
						    GPU_MEM_FD, 0));
	if (ret) {
		(void)VMM(MemRelease)(handle);
		memory->fd = -1;
		return ret;
	}
	ret = map_handle(d, handle, memory, false);
	if (!ret) {
		std::lock_guard<std::mutex> guard(d->lock);

		ret = CHECK(GPU(MemsetAsync)(memory->address, 0, memory->bytes,
					     d->stream));
		if (!ret)
			ret = CHECK(GPU(StreamSynchronize)(d->stream));
	}
	if (ret)
		plugin_free(d, memory);
	return ret;
}

static int plugin_import(struct t3_gpu_device *d, struct t3_gpu_memory *memory)
{
	current c(d);
	gpu_mem_handle handle;
	int ret = CHECK(VMM(MemImportFromShareableHandle)(
		&handle, (void *)(uintptr_t)memory->fd, GPU_MEM_FD));

	return ret ? ret : map_handle(d, handle, memory, true);
}

/* Members of a process share what they pin. */
static std::mutex pin_lock;
static std::map<void *, int> pins;

static int plugin_pin(struct t3_gpu_device *d, void *memory, uint64_t bytes,
		      void **at)
{
	current c(d);
	std::lock_guard<std::mutex> guard(pin_lock);
	int ret = 0;

	if (!pins.count(memory))
		ret = CHECK(GPU(HostRegister)(memory, bytes,
					      GPU(HostRegisterPortable) |
					      GPU(HostRegisterMapped)));
	if (ret)
		return ret;
	ret = CHECK(GPU(HostGetDevicePointer)(at, memory, 0));
	if (ret) {
		if (!pins.count(memory))
			(void)GPU(HostUnregister)(memory);
		return ret;
	}
	pins[memory]++;
	return 0;
}

static void plugin_unpin(struct t3_gpu_device *d, void *memory)
{
	current c(d);
	std::lock_guard<std::mutex> guard(pin_lock);
	std::map<void *, int>::iterator pin = pins.find(memory);

	if (pin == pins.end() || --pin->second)
		return;
	pins.erase(pin);
	(void)GPU(HostUnregister)(memory);
}

static int copy_now(struct t3_gpu_device *d, void *to, const void *from,
		    uint64_t bytes)
{
	current c(d);
	std::lock_guard<std::mutex> guard(d->lock);
	int ret = CHECK(GPU(MemcpyAsync)(to, from, bytes, GPU(MemcpyDefault),
					 d->stream));

	return ret ? ret : CHECK(GPU(StreamSynchronize)(d->stream));
}

/* ---- streams ---- */

static int plugin_stream(struct t3_gpu_device *d, void **stream)
{
	current c(d);
	int least = 0, most = 0;
	GPU(Stream_t) s;
	int ret = CHECK(GPU(DeviceGetStreamPriorityRange)(&least, &most));

	if (!ret)
		ret = CHECK(GPU(StreamCreateWithPriority)(
			&s, GPU(StreamNonBlocking), most));
	if (!ret)
		*stream = s;
	return ret;
}

static void plugin_stream_end(struct t3_gpu_device *d, void *stream)
{
	current c(d);

	(void)GPU(StreamDestroy)((GPU(Stream_t))stream);
}

static int plugin_event(struct t3_gpu_device *d, void **event)
{
	current c(d);
	GPU(Event_t) e;
	int ret = CHECK(GPU(EventCreateWithFlags)(&e, GPU(EventDisableTiming)));

	if (!ret)
		*event = e;
	return ret;
}

static void plugin_event_end(struct t3_gpu_device *d, void *event)
{
	current c(d);

	(void)GPU(EventDestroy)((GPU(Event_t))event);
}

static int plugin_idle(struct t3_gpu_device *d, void *stream)
{
	current c(d);
	GPU(Error_t) e = GPU(StreamQuery)((GPU(Stream_t))stream);

	if (e == GPU(ErrorNotReady)) {
		(void)GPU(GetLastError)();
		return 0;
	}
	return e == GPU(Success) ? 1 : CHECK(e);
}

static int plugin_wait(struct t3_gpu_device *d, void *stream, uint32_t *word,
		       uint32_t epoch)
{
	current c(d);

	return CHECK(gpu_stream_wait((GPU(Stream_t))stream, word, epoch));
}

static int plugin_write(struct t3_gpu_device *d, void *stream, uint32_t *word,
			uint32_t epoch)
{
	current c(d);

	return CHECK(gpu_stream_write((GPU(Stream_t))stream, word, epoch));
}

static int plugin_mark(struct t3_gpu_device *d, void *stream, void *event)
{
	current c(d);

	return CHECK(GPU(EventRecord)((GPU(Event_t))event,
				      (GPU(Stream_t))stream));
}

static int plugin_passed(struct t3_gpu_device *d, void *event)
{
	current c(d);
	GPU(Error_t) e = GPU(EventQuery)((GPU(Event_t))event);

	if (e == GPU(ErrorNotReady)) {
		(void)GPU(GetLastError)();
		return 0;
	}
	return e == GPU(Success) ? 1 : CHECK(e);
}

static int plugin_after(struct t3_gpu_device *d, void *stream, void *event)
{
	current c(d);

	return CHECK(GPU(StreamWaitEvent)((GPU(Stream_t))stream,
					  (GPU(Event_t))event, 0));
}

static int plugin_capturing(struct t3_gpu_device *d, void *stream)
{
	current c(d);
	GPU(StreamCaptureStatus) status = GPU(StreamCaptureStatusNone);
	int ret = CHECK(GPU(StreamIsCapturing)((GPU(Stream_t))stream, &status));

	return ret ? ret : status == GPU(StreamCaptureStatusActive);
}

/* ---- transfers ---- */

/* Do all rows of all operands begin at multiples of @bytes? */
static bool aligned(const struct t3_gpu_transfer *t, uint64_t bytes)
{
	uint64_t all = (uintptr_t)t->to | t->width;

	if (t->rows > 1)
		all |= t->pitch;
	for (uint32_t s = 0; s < t->sources; s++) {
		all |= (uintptr_t)t->from[s];
		if (t->rows > 1)
			all |= t->from_pitch[s];
	}
	return !(all % bytes);
}

static uint32_t blocks_for(uint64_t packs)
{
	uint64_t blocks = (packs + T3_GPU_THREADS - 1) / T3_GPU_THREADS;

	return blocks < T3_GPU_BLOCKS ? (uint32_t)blocks : T3_GPU_BLOCKS;
}

template <typename P>
static int move_as(const struct t3_gpu_transfer *t, GPU(Stream_t) stream)
{
	move_rows<P><<<blocks_for(t->rows * (t->width / sizeof(P))),
		       T3_GPU_THREADS, 0, stream>>>(*t);
	return check(GPU(GetLastError)(), "moving");
}

static int move(const struct t3_gpu_transfer *t, GPU(Stream_t) stream)
{
	if (aligned(t, 16))
		return move_as<uint4>(t, stream);
	if (aligned(t, 4))
		return move_as<uint32_t>(t, stream);
	return move_as<uint16_t>(t, stream);
}

template <typename T, int N>
static int sum_as(const struct t3_gpu_transfer *t, GPU(Stream_t) stream)
{
	sum_rows<T, N><<<blocks_for(t->rows * (t->width / (N * sizeof(T)))),
			 T3_GPU_THREADS, 0, stream>>>(*t);
	return check(GPU(GetLastError)(), "summing");
}

template <typename T>
static int sum_of(const struct t3_gpu_transfer *t, GPU(Stream_t) stream)
{
	if (aligned(t, 16))
		return sum_as<T, 16 / sizeof(T)>(t, stream);
	return sum_as<T, 1>(t, stream);
}

static int sum(const struct t3_gpu_transfer *t, GPU(Stream_t) stream)
{
	switch (t->dtype) {
	case T3_DTYPE_F32:
		return sum_of<f32>(t, stream);
	case T3_DTYPE_F64:
		return sum_of<f64>(t, stream);
	case T3_DTYPE_F16:
		return sum_of<f16>(t, stream);
	case T3_DTYPE_BF16:
		return sum_of<bf16>(t, stream);
	case T3_DTYPE_I32:
		return sum_of<i32>(t, stream);
	default:
		return fail(EINVAL, "dtype is %u", t->dtype);
	}
}

static int copy(const struct t3_gpu_transfer *t, GPU(Stream_t) stream)
{
	if (t->rows == 1 || (t->pitch == t->width && t->from_pitch[0] == t->width))
		return CHECK(GPU(MemcpyAsync)(t->to, t->from[0],
					      t->rows * t->width,
					      GPU(MemcpyDefault), stream));
	return CHECK(GPU(Memcpy2DAsync)(t->to, t->pitch, t->from[0],
					t->from_pitch[0], t->width, t->rows,
					GPU(MemcpyDefault), stream));
}

static int plugin_transfer(struct t3_gpu_device *d, void *stream,
			   const struct t3_gpu_transfer *t)
{
	current c(d);
	GPU(Stream_t) s = (GPU(Stream_t))stream;

	if (!t->rows || !t->width)
		return 0;
	switch (t->by) {
	case T3_GPU_BY_ENGINE:
		return copy(t, s);
	case T3_GPU_BY_KERNEL:
		return move(t, s);
	default:
		return sum(t, s);
	}
}

/* ---- graphs ---- */

static int plugin_begin_at(struct t3_gpu_device *d, void *stream,
			   uint32_t *epoch)
{
	current c(d);

	begin_epoch<<<1, 1, 0, (GPU(Stream_t))stream>>>(epoch);
	return check(GPU(GetLastError)(), "beginning an epoch");
}

static int plugin_wait_at(struct t3_gpu_device *d, void *stream,
			  const uint32_t *word, const uint32_t *epoch)
{
	current c(d);

	await_word<<<1, 1, 0, (GPU(Stream_t))stream>>>(word, epoch);
	return check(GPU(GetLastError)(), "waiting for a word");
}

static int plugin_write_at(struct t3_gpu_device *d, void *stream,
			   uint32_t *word, const uint32_t *epoch)
{
	current c(d);

	write_word<<<1, 1, 0, (GPU(Stream_t))stream>>>(word, epoch);
	return check(GPU(GetLastError)(), "writing a word");
}

/* ---- a member's GPU ---- */

/* The first call of a kernel loads it, which may wait for all that runs. */
static int load_kernels(struct t3_gpu_device *d)
{
	static const uint32_t dtypes[] = {
		T3_DTYPE_F32, T3_DTYPE_F64, T3_DTYPE_F16, T3_DTYPE_BF16,
		T3_DTYPE_I32,
	};
	struct t3_gpu_memory memory;
	int ret = plugin_alloc(d, 4096, &memory);

	for (uint32_t i = 0; !ret && i < 5 * 3 * 2; i++) {
		struct t3_gpu_transfer t = {};

		t.by = i % 2 ? T3_GPU_BY_KERNEL : T3_GPU_BY_SUM;
		t.dtype = dtypes[i / 6];
		t.rows = 1;
		t.sources = 1;
		/* Packs of 16, 4, and one element. */
		t.width = 32;
		t.to = (char *)memory.address + (i / 2 % 3 ? 8 : 0);
		if (i % 2 && i / 2 % 3 == 2)
			t.to = (char *)memory.address + 2;
		t.from[0] = t.to;
		ret = plugin_transfer(d, d->stream, &t);
	}
	if (!ret)
		ret = plugin_begin_at(d, d->stream, NULL);
	if (!ret)
		ret = plugin_wait_at(d, d->stream, NULL, NULL);
	if (!ret)
		ret = plugin_write_at(d, d->stream, NULL, NULL);
	if (!ret)
		ret = CHECK(GPU(StreamSynchronize)(d->stream));
	plugin_free(d, &memory);
	return ret;
}

static void plugin_close(struct t3_gpu_device *d)
{
	if (d->stream)
		plugin_stream_end(d, d->stream);
	delete d;
}

static int set_up(struct t3_gpu_device *d)
{
	gpu_mem_prop prop = prop_of(d->number);
	void *stream = NULL;
	int ret;

	/* Makes the context, where nobody has yet. */
	ret = CHECK(GPU(Free)(NULL));
	if (!ret)
		ret = CHECK(VMM(MemGetAllocationGranularity)(&d->granule, &prop,
							     GPU_MEM_GRANULE));
	if (!ret)
		ret = plugin_stream(d, &stream);
	d->stream = (GPU(Stream_t))stream;
	return ret ? ret : load_kernels(d);
}

static int plugin_open(struct t3_gpu_device **device)
{
	struct t3_gpu_device *d = new (std::nothrow) t3_gpu_device;
	int ret;

	if (!d)
		return fail(ENOMEM, "no memory");
	d->stream = NULL;
	ret = CHECK(GPU(GetDevice)(&d->number));
	if (!ret)
		ret = set_up(d);
	if (ret) {
		plugin_close(d);
		return ret;
	}
	*device = d;
	return 0;
}

extern "C" __attribute__((visibility("default")))
const struct t3_gpu_runtime t3_gpu_runtime = {
	.abi = T3_GPU_RUNTIME_ABI,
	.name = GPU_NAME,
	.probe = plugin_probe,
	.error = plugin_error,
	.open = plugin_open,
	.close = plugin_close,
	.alloc = plugin_alloc,
	.free = plugin_free,
	.import_memory = plugin_import,
	.unimport = plugin_unimport,
	.pin = plugin_pin,
	.unpin = plugin_unpin,
	.stream = plugin_stream,
	.stream_end = plugin_stream_end,
	.event = plugin_event,
	.event_end = plugin_event_end,
	.idle = plugin_idle,
	.wait = plugin_wait,
	.write = plugin_write,
	.transfer = plugin_transfer,
	.fetch = copy_now,
	.fill = copy_now,
	.mark = plugin_mark,
	.passed = plugin_passed,
	.after = plugin_after,
	.capturing = plugin_capturing,
	.begin_at = plugin_begin_at,
	.wait_at = plugin_wait_at,
	.write_at = plugin_write_at,
};
