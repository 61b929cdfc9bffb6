// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * MPI_Reduce_scatter_block of two ranks, timed as reduce_scatter.h says.
 *
 * usage: mpirun -np 2 bench_mpi [--in-place] [--iterations N] BYTES...
 *
 * BYTES are those of each rank's whole input: recvcount is half of it.
 * Prints "BYTES us". With count_bytes.c within, it measures no time but prints
 * "BYTES by-system-call copied summed": bytes of an iteration, of both ranks.
 */
#include <mpi.h>
#include <string.h>

#include "reduce_scatter.h"
#include "count_bytes.h"

/**
 * struct job - one rank's buffers
 * @copy: the input, to start from
 * @from: sent from; also received into, where @in_place
 * @to: received into
 * @n: elements of the input
 */
struct job {
	int rank;
	int in_place;
	float *copy;
	float *from;
	float *to;
	size_t n;
};

/* The sum, or one that counts. */
static MPI_Op sum;

static double once(const struct job *j)
{
	double start;

	memcpy(j->from, j->copy, j->n * sizeof(float));
	MPI_Barrier(MPI_COMM_WORLD);
	count_start();
	start = now();
	if (j->in_place)
		MPI_Reduce_scatter_block(MPI_IN_PLACE, j->from, j->n / 2,
					 MPI_FLOAT, sum, MPI_COMM_WORLD);
	else
		MPI_Reduce_scatter_block(j->from, j->to, j->n / 2, MPI_FLOAT,
					 sum, MPI_COMM_WORLD);
	start = now() - start;
	count_stop();
	return start;
}

static int wanted;	/* iterations; 0: as many as suit the size */

/* The same at both ranks. */
static double slowest(double us)
{
	double most;

	MPI_Allreduce(&us, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

/* A bad setting may be a hundred times slower: it gets a second or so. */
static int iterations_left(double us, size_t bytes)
{
	int n = wanted ? wanted : iterations_for(bytes);
	double slower = slowest(us);

	if (wanted)
		return n;

	if (n * slower > 1e6)
		n = (int)(1e6 / slower);
	return n < 3 ? 3 : n;
}

/* Of one iteration, at both ranks. */
static void tell_counts(size_t bytes, int iterations, int rank)
{
	unsigned long long mine[COUNTS], all[COUNTS];

	count_read(mine);
	MPI_Reduce(mine, all, COUNTS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0,
		   MPI_COMM_WORLD);
	if (!rank)
		printf("%zu %.1f %.1f %.1f\n", bytes,
		       (double)all[COUNT_CALLS] / iterations,
		       (double)all[COUNT_COPIED] / iterations,
		       (double)all[COUNT_SUMMED] / iterations);
}

static int measure(struct job *j)
{
	size_t bytes = j->n * sizeof(float);
	int iterations, i;
	double *mine, *all, us = 0;
	unsigned long wrong, total;

	for (i = 0; i < WARMUP && slowest(us) < 1e5; i++)
		us = once(j);
	iterations = iterations_left(us, bytes);
	mine = calloc(iterations, sizeof(double));
	all = calloc(2 * iterations, sizeof(double));
	count_reset();
	for (i = 0; i < iterations; i++)
		mine[i] = once(j);
	wrong = count_wrong(j->in_place ? j->from : j->to,
			    j->rank * (j->n / 2), j->n / 2);
	MPI_Allreduce(&wrong, &total, 1, MPI_UNSIGNED_LONG, MPI_SUM,
		      MPI_COMM_WORLD);
	MPI_Gather(mine, iterations, MPI_DOUBLE, all, iterations, MPI_DOUBLE, 0,
		   MPI_COMM_WORLD);
	if (COUNTING) {
		tell_counts(bytes, iterations, j->rank);
	} else if (!j->rank) {
		double *pairs = calloc(2 * iterations, sizeof(double));

		for (i = 0; i < iterations; i++) {
			pairs[2 * i] = all[i];
			pairs[2 * i + 1] = all[iterations + i];
		}
		printf("%zu %.3f\n", bytes, median_of_slower(pairs, iterations));
		fflush(stdout);
		free(pairs);
	}
	free(mine);
	free(all);
	return total != 0;
}

static int one_size(struct job *j, size_t bytes)
{
	size_t i;
	int ret;

	j->n = bytes / sizeof(float);
	MPI_Alloc_mem(bytes, MPI_INFO_NULL, &j->from);
	MPI_Alloc_mem(bytes / 2, MPI_INFO_NULL, &j->to);
	j->copy = malloc(bytes);
	for (i = 0; i < j->n; i++)
		j->copy[i] = input(j->rank, i);
	memset(j->to, 0, bytes / 2);
	ret = measure(j);
	if (ret && !j->rank)
		fprintf(stderr, "bench_mpi: %zu bytes: wrong sums\n", bytes);
	free(j->copy);
	MPI_Free_mem(j->from);
	MPI_Free_mem(j->to);
	return ret;
}

int main(int argc, char **argv)
{
	struct job j = { 0 };
	int ranks, i, ret = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	sum = MPI_SUM;
	if (COUNTING)
		MPI_Op_create(count_sum, 1, &sum);
	if (ranks != 2) {
		fprintf(stderr, "bench_mpi: %d ranks, not 2\n", ranks);
		ret = 2;
	}
	for (i = 1; i < argc && !ret; i++) {
		if (!strcmp(argv[i], "--in-place"))
			j.in_place = 1;
		else if (!strcmp(argv[i], "--iterations") && i + 1 < argc)
			wanted = atoi(argv[++i]);
		else
			ret = one_size(&j, strtoull(argv[i], NULL, 10));
	}
	MPI_Finalize();
	return ret;
}
