// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Predictions of what was, or will be, measured.
 */
#include <errno.h>
#include <math.h>

#include "results.h"
#include "sim.h"

static int simulate(double *time, const struct model_machine *machine,
		    const struct model_plan *plan, const struct model_run *run)
{
	struct model_result result;
	int ret = model_sim(&result, machine, plan, run);

	*time = result.time;
	return ret ? t3_fail(-ret, "model_predict: the simulation failed") : 0;
}

static int run_gemm(double *time, const struct model_machine *machine,
		    const struct model_plan *plan, double units,
		    const struct model_run *given)
{
	struct model_run run = *given;
	struct model_gemm gemm;
	int ret;

	if (model_gemm_make(&gemm, machine, &plan->work, &plan->rank[0],
			    (uint32_t)units, !machine->near_memory))
		return t3_fail(ENOMEM, "model_predict: no memory");
	run.gemm = &gemm;
	ret = simulate(time, machine, plan, &run);
	model_gemm_free(&gemm);
	return ret;
}

/* Overlapped, with the best number of units for the sums. */
static int run_fused(double *time, const struct model_machine *machine,
		     const struct model_plan *plan, struct model_run *run)
{
	struct model_machine tried = *machine;
	double units = machine->sum_units, t;
	int ret = 0;

	*time = INFINITY;
	run->alone = false;
	do {
		tried.sum_units = units;
		ret = run_gemm(&t, &tried, plan, tried.units - units, run);
		*time = fmin(*time, t);
		units = floor(units / 2);
	} while (units >= 1 && !ret);
	return ret;
}

static struct model_run run_of(const struct model_machine *machine)
{
	return (struct model_run) {
		.carrier = machine->near_memory ? MODEL_BY_MEMORY : MODEL_BY_SUMS,
		.policy = (uint32_t)machine->policy,
	};
}

int model_predict_comm(double *time, const struct model_machine *machine,
		       const struct model_work *work)
{
	struct model_run run = run_of(machine);
	struct model_plan plan;
	int ret = model_plan_make(&plan, work, (uint32_t)machine->tile_m,
				  (uint32_t)machine->tile_n);

	if (ret)
		return ret;
	ret = simulate(time, machine, &plan, &run);
	*time += machine->comm_launch;
	model_plan_free(&plan);
	return ret;
}

int model_predict(struct model_time *time, const struct model_machine *machine,
		  const struct model_work *work)
{
	struct model_run run = run_of(machine);
	struct model_plan plan;
	int ret = model_plan_make(&plan, work, (uint32_t)machine->tile_m,
				  (uint32_t)machine->tile_n);

	if (ret)
		return ret;
	run.alone = true;
	ret = run_gemm(&time->gemm, machine, &plan, machine->units, &run);
	run.alone = false;
	if (!ret)
		ret = simulate(&time->comm, machine, &plan, &run);
	time->comm += machine->comm_launch;
	if (!ret)
		ret = run_fused(&time->fused, machine, &plan, &run);
	model_plan_free(&plan);
	return ret;
}
