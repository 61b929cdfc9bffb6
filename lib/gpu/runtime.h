/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the gpu engine asks of a plug-in, libt3-cuda.so or libt3-hip.so: memory
 * that other processes can map, streams, and what is queued on them. Neither
 * side includes the other's headers: this file is all that they share.
 */
#ifndef T3_GPU_RUNTIME_H
#define T3_GPU_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define T3_GPU_RUNTIME_ABI	1
#define T3_GPU_SOURCES		64	/* of a sum, at most */

/* The plug-in's; one for each member. */
struct t3_gpu_device;

/**
 * struct t3_gpu_memory - memory of a GPU that other processes can map
 * @address: in this process
 * @bytes: rounded up to what the GPU maps at a time
 * @fd: the right to map it; -1: none
 *
 * It lives as long as somebody has it mapped, whatever becomes of its maker.
 */
struct t3_gpu_memory {
	void *address;
	uint64_t bytes;
	int fd;
};

/* Who moves the bytes. */
enum t3_gpu_by {
	T3_GPU_BY_ENGINE,	/* a copy engine: one source */
	T3_GPU_BY_KERNEL,	/* the processor itself: one source */
	T3_GPU_BY_SUM,		/* a kernel: the ordered sum in fp32 */
};

/**
 * struct t3_gpu_transfer - a rectangle of elements, moved or summed
 * @by: enum t3_gpu_by
 * @dtype: T3_DTYPE_*
 * @rows: of the rectangle
 * @sources: 1 .. T3_GPU_SOURCES
 * @width: bytes of a row
 * @to: the first element
 * @pitch: bytes from row to row
 * @from: the sources' first elements; any may be @to
 * @from_pitch: theirs
 */
struct t3_gpu_transfer {
	uint32_t by;
	uint32_t dtype;
	uint32_t rows;
	uint32_t sources;
	uint64_t width;
	void *to;
	uint64_t pitch;
	const void *from[T3_GPU_SOURCES];
	uint64_t from_pitch[T3_GPU_SOURCES];
};

/**
 * struct t3_gpu_runtime - a plug-in
 * @abi: T3_GPU_RUNTIME_ABI
 * @name: "cuda" or "hip"
 * @probe: is there a GPU that can do it? 0, or -ENODEV; a sentence either way
 * @error: the calling thread's last failure in words; never NULL
 * @open: the thread's current GPU; loads all kernels
 * @close: give it back; nothing is queued any more
 * @alloc: zeroed memory; *@memory is filled in
 * @free: of @alloc
 * @import_memory: map a peer's memory; *@memory has fd and bytes, and gets address
 * @unimport: of @import_memory
 * @pin: let the GPU read and write ordinary memory of this process, whole
 *	pages; *@at: where the GPU has it
 * @unpin: of @pin
 * @stream: a new stream that waits for no other
 * @stream_end: of @stream, when it is idle
 * @event: a mark for @follow
 * @event_end: of @event
 * @idle: 1 all that was queued on the stream has run; 0 not yet
 * @wait: until *@word is at or past @epoch, cyclically; @word is the GPU's
 *	address, here and below
 * @write: *@word = @epoch, when all before it on the stream is visible to all
 * @transfer: move or sum
 * @fetch: copy to ordinary memory by a copy engine, and wait for it
 * @fill: set memory from ordinary memory, and wait for it
 * @mark: set a mark on a stream
 * @passed: 1 all that was queued before the mark was set last has run; 0 not yet
 * @after: what comes next on a stream comes after the mark
 * @capturing: 1 the stream is recorded into a graph; 0 it is not
 * @begin_at: *@epoch += 1: for graphs, where an epoch has no number yet
 * @wait_at: until *@word is at or past *@epoch
 * @write_at: *@word = *@epoch
 *
 * Constant. Each that returns int returns 0 or a negative errno, unless told
 * otherwise. All from @wait on, but for @fetch and @fill, return at once. One
 * device is used by several threads at once; a stream by one.
 */
struct t3_gpu_runtime {
	uint32_t abi;
	const char *name;
	int (*probe)(char *why, size_t bytes);
	const char *(*error)(void);
	int (*open)(struct t3_gpu_device **device);
	void (*close)(struct t3_gpu_device *device);
	int (*alloc)(struct t3_gpu_device *device, uint64_t bytes,
		     struct t3_gpu_memory *memory);
	void (*free)(struct t3_gpu_device *device,
		     struct t3_gpu_memory *memory);
	int (*import_memory)(struct t3_gpu_device *device,
			     struct t3_gpu_memory *memory);
	void (*unimport)(struct t3_gpu_device *device,
			 struct t3_gpu_memory *memory);
	int (*pin)(struct t3_gpu_device *device, void *memory, uint64_t bytes,
		   void **at);
	void (*unpin)(struct t3_gpu_device *device, void *memory);
	int (*stream)(struct t3_gpu_device *device, void **stream);
	void (*stream_end)(struct t3_gpu_device *device, void *stream);
	int (*event)(struct t3_gpu_device *device, void **event);
	void (*event_end)(struct t3_gpu_device *device, void *event);
	int (*idle)(struct t3_gpu_device *device, void *stream);
	int (*wait)(struct t3_gpu_device *device, void *stream, uint32_t *word,
		    uint32_t epoch);
	int (*write)(struct t3_gpu_device *device, void *stream, uint32_t *word,
		     uint32_t epoch);
	int (*transfer)(struct t3_gpu_device *device, void *stream,
			const struct t3_gpu_transfer *transfer);
	int (*fetch)(struct t3_gpu_device *device, void *to, const void *from,
		     uint64_t bytes);
	int (*fill)(struct t3_gpu_device *device, void *to, const void *from,
		    uint64_t bytes);
	int (*mark)(struct t3_gpu_device *device, void *stream, void *event);
	int (*passed)(struct t3_gpu_device *device, void *event);
	int (*after)(struct t3_gpu_device *device, void *stream, void *event);
	int (*capturing)(struct t3_gpu_device *device, void *stream);
	int (*begin_at)(struct t3_gpu_device *device, void *stream,
			uint32_t *epoch);
	int (*wait_at)(struct t3_gpu_device *device, void *stream,
		       const uint32_t *word, const uint32_t *epoch);
	int (*write_at)(struct t3_gpu_device *device, void *stream,
			uint32_t *word, const uint32_t *epoch);
};

/* What a plug-in exports. */
#define T3_GPU_RUNTIME_SYMBOL	"t3_gpu_runtime"
extern const struct t3_gpu_runtime t3_gpu_runtime;

#ifdef __cplusplus
}
#endif

#endif /* T3_GPU_RUNTIME_H */
