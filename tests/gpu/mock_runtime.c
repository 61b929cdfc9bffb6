// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A plug-in without a GPU: memory is memfds, a stream is a thread that carries
 * out what is queued, in order and after random delays. So the whole gpu engine
 * is tested where there is no GPU.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fp_env.h"
#include "reduce.h"
#include "runtime.h"

#define GRANULE		65536

struct t3_gpu_device {
	int number;
};

enum kind {
	OP_WAIT,
	OP_WRITE,
	OP_TRANSFER,
	OP_MARK,
};

struct op {
	struct op *next;
	enum kind kind;
	uint32_t *word;
	uint32_t epoch;
	struct t3_gpu_transfer transfer;
};

/**
 * struct stream - a queue and the thread that runs it
 * @lock: guards all
 * @first: not yet run, the one that is running too
 * @ends: the thread is to go
 */
struct stream {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	struct op *first;
	struct op **last;
	bool ends;
	unsigned int seed;
};

static int mock_probe(char *why, size_t bytes)
{
	snprintf(why, bytes, "a mocked GPU");
	return 0;
}

static const char *mock_error(void)
{
	return "mocked";
}

static int mock_open(struct t3_gpu_device **device)
{
	*device = calloc(1, sizeof(**device));
	return *device ? 0 : -ENOMEM;
}

static void mock_close(struct t3_gpu_device *device)
{
	free(device);
}

static int map(struct t3_gpu_memory *memory, int fd)
{
	void *at = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);

	if (at == MAP_FAILED)
		return -ENOMEM;
	memory->address = at;
	return 0;
}

static int mock_alloc(struct t3_gpu_device *device, uint64_t bytes,
		      struct t3_gpu_memory *memory)
{
	(void)device;
	memory->bytes = (bytes + GRANULE - 1) / GRANULE * GRANULE;
	memory->fd = memfd_create("t3-mock", MFD_CLOEXEC);
	if (memory->fd < 0)
		return -errno;
	if (!ftruncate(memory->fd, memory->bytes) && !map(memory, memory->fd))
		return 0;
	close(memory->fd);
	return -ENOMEM;
}

static void mock_unimport(struct t3_gpu_device *device,
			  struct t3_gpu_memory *memory)
{
	(void)device;
	munmap(memory->address, memory->bytes);
	memory->address = NULL;
}

static void mock_free(struct t3_gpu_device *device, struct t3_gpu_memory *memory)
{
	mock_unimport(device, memory);
	close(memory->fd);
}

static int mock_import(struct t3_gpu_device *device, struct t3_gpu_memory *memory)
{
	(void)device;
	return map(memory, memory->fd);
}

static int mock_pin(struct t3_gpu_device *device, void *memory, uint64_t bytes,
		    void **at)
{
	(void)device;
	(void)bytes;
	*at = memory;
	return 0;
}

static void mock_unpin(struct t3_gpu_device *device, void *memory)
{
	(void)device;
	(void)memory;
}

static void nap(uint32_t us)
{
	struct timespec ts = { 0, us * 1000L };

	nanosleep(&ts, NULL);
}

static void copy_rows(const struct t3_gpu_transfer *t)
{
	uint32_t i;

	for (i = 0; i < t->rows; i++)
		memcpy((char *)t->to + i * t->pitch,
		       (const char *)t->from[0] + i * t->from_pitch[0], t->width);
}

static void sum_rows(const struct t3_gpu_transfer *t)
{
	const void *from[T3_GPU_SOURCES];
	u64 saved = t3_fp_enter();
	uint32_t i, s;

	for (i = 0; i < t->rows; i++) {
		for (s = 0; s < t->sources; s++)
			from[s] = (const char *)t->from[s] +
				  i * t->from_pitch[s];
		t3_reduce_best()->sum[t->dtype - 1]((char *)t->to + i * t->pitch,
						    from, t->sources,
						    t->width / t3_dtype_size(t->dtype));
	}
	t3_fp_leave(saved);
}

static void run_op(struct stream *s, const struct op *op)
{
	switch (op->kind) {
	case OP_WAIT:
		while ((s32)(t3_load_acquire(op->word) - op->epoch) < 0)
			nap(20);
		break;
	case OP_WRITE:
		t3_store_release(op->word, op->epoch);
		break;
	case OP_MARK:
		__atomic_sub_fetch(op->word, 1, __ATOMIC_SEQ_CST);
		break;
	case OP_TRANSFER:
		if (op->transfer.by == T3_GPU_BY_SUM)
			sum_rows(&op->transfer);
		else
			copy_rows(&op->transfer);
		break;
	}
	if (rand_r(&s->seed) % 16 == 0)
		nap(rand_r(&s->seed) % 100);
}

static void *run(void *arg)
{
	struct stream *s = arg;
	struct op *op;

	pthread_mutex_lock(&s->lock);
	while (!s->ends || s->first) {
		op = s->first;
		if (!op) {
			pthread_cond_wait(&s->more, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		run_op(s, op);
		pthread_mutex_lock(&s->lock);
		s->first = op->next;
		if (!s->first)
			s->last = &s->first;
		free(op);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int mock_stream(struct t3_gpu_device *device, void **stream)
{
	struct stream *s = calloc(1, sizeof(*s));

	(void)device;
	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	s->last = &s->first;
	s->seed = (unsigned int)(uintptr_t)s ^ getpid();
	if (pthread_create(&s->thread, NULL, run, s)) {
		free(s);
		return -EAGAIN;
	}
	*stream = s;
	return 0;
}

static void mock_stream_end(struct t3_gpu_device *device, void *stream)
{
	struct stream *s = stream;

	(void)device;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->more);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int put(void *stream, const struct op *what)
{
	struct op *op = malloc(sizeof(*op));
	struct stream *s = stream;

	if (!op)
		return -ENOMEM;
	*op = *what;
	op->next = NULL;
	pthread_mutex_lock(&s->lock);
	*s->last = op;
	s->last = &op->next;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int mock_idle(struct t3_gpu_device *device, void *stream)
{
	struct stream *s = stream;
	int idle;

	(void)device;
	pthread_mutex_lock(&s->lock);
	idle = !s->first;
	pthread_mutex_unlock(&s->lock);
	return idle;
}

static int mock_wait(struct t3_gpu_device *device, void *stream, uint32_t *word,
		     uint32_t epoch)
{
	const struct op op = { .kind = OP_WAIT, .word = word, .epoch = epoch };

	(void)device;
	return put(stream, &op);
}

static int mock_write(struct t3_gpu_device *device, void *stream, uint32_t *word,
		      uint32_t epoch)
{
	const struct op op = { .kind = OP_WRITE, .word = word, .epoch = epoch };

	(void)device;
	return put(stream, &op);
}

static int mock_transfer(struct t3_gpu_device *device, void *stream,
			 const struct t3_gpu_transfer *transfer)
{
	struct op op = { .kind = OP_TRANSFER };

	(void)device;
	op.transfer = *transfer;
	return put(stream, &op);
}

static int mock_copy(struct t3_gpu_device *device, void *to, const void *from,
		     uint64_t bytes)
{
	(void)device;
	memcpy(to, from, bytes);
	return 0;
}

/* A mark is how many of its settings have not been passed. */
static int mock_event(struct t3_gpu_device *device, void **event)
{
	(void)device;
	*event = calloc(1, sizeof(uint32_t));
	return *event ? 0 : -ENOMEM;
}

static void mock_event_end(struct t3_gpu_device *device, void *event)
{
	(void)device;
	free(event);
}

static int mock_mark(struct t3_gpu_device *device, void *stream, void *event)
{
	const struct op op = { .kind = OP_MARK, .word = event };

	(void)device;
	t3_add32(event, 1);
	return put(stream, &op);
}

static int mock_passed(struct t3_gpu_device *device, void *event)
{
	(void)device;
	return !t3_load_acquire((uint32_t *)event);
}

/* There are no graphs. */
static int no_graph(struct t3_gpu_device *device, void *stream, void *what)
{
	(void)device;
	(void)stream;
	(void)what;
	return -ENOTSUP;
}

static int mock_capturing(struct t3_gpu_device *device, void *stream)
{
	(void)device;
	(void)stream;
	return 0;
}

static int mock_begin_at(struct t3_gpu_device *device, void *stream,
			 uint32_t *epoch)
{
	return no_graph(device, stream, epoch);
}

static int mock_wait_at(struct t3_gpu_device *device, void *stream,
			const uint32_t *word, const uint32_t *epoch)
{
	(void)word;
	return no_graph(device, stream, (void *)epoch);
}

static int mock_write_at(struct t3_gpu_device *device, void *stream,
			 uint32_t *word, const uint32_t *epoch)
{
	(void)epoch;
	return no_graph(device, stream, word);
}

__attribute__((visibility("default")))
const struct t3_gpu_runtime t3_gpu_runtime = {
	.abi = T3_GPU_RUNTIME_ABI,
	.name = "mock",
	.probe = mock_probe,
	.error = mock_error,
	.open = mock_open,
	.close = mock_close,
	.alloc = mock_alloc,
	.free = mock_free,
	.import_memory = mock_import,
	.unimport = mock_unimport,
	.pin = mock_pin,
	.unpin = mock_unpin,
	.stream = mock_stream,
	.stream_end = mock_stream_end,
	.event = mock_event,
	.event_end = mock_event_end,
	.idle = mock_idle,
	.wait = mock_wait,
	.write = mock_write,
	.transfer = mock_transfer,
	.fetch = mock_copy,
	.fill = mock_copy,
	.mark = mock_mark,
	.passed = mock_passed,
	.after = no_graph,
	.capturing = mock_capturing,
	.begin_at = mock_begin_at,
	.wait_at = mock_wait_at,
	.write_at = mock_write_at,
};
