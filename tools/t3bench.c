// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3bench: see Documentation/t3bench.rst.
 *
 * Exit status: 0 it ran and every check held; 1 it did not; 2 a bad option.
 */
#include "bench.h"

int main(int argc, char **argv)
{
	struct bench_control *control;
	struct bench_options o;
	char why[256];

	if (bench_parse(argc, argv, &o))
		return 2;
	if (o.list_shapes) {
		bench_list_shapes(stdout);
		return 0;
	}
	bench_gemm_prepare(&o, argv);
	if (t3_engine_why(o.engine, why, sizeof(why)) < 0) {
		fprintf(stderr, "t3bench: no engine \"%s\" here: %s\n",
			t3_engine_name(o.engine), why);
		return 1;
	}
	control = bench_control_new(&o);
	if (!control) {
		perror("t3bench: no memory that processes share");
		return 1;
	}
	if (bench_run(&o, control))
		return 1;
	bench_report(&o, control);
	return bench_ok(&o, control) ? 0 : 1;
}
