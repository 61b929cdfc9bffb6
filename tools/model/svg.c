// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The charts.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "draw.h"
#include "svg.h"

#define LEFT	64.0
#define TOP	96.0
#define TALL	300.0
#define BELOW	130.0

/**
 * struct axis - a vertical axis
 * @low: value at the bottom
 * @high: value at the top
 * @step: between lines
 */
struct axis {
	double low;
	double high;
	double step;
};

static double y_of(const struct axis *axis, double value)
{
	return TOP + TALL * (axis->high - value) / (axis->high - axis->low);
}

static void draw_axis(FILE *f, const struct axis *axis, double width,
		      const char *format)
{
	double value;
	char text[32];

	for (value = axis->low; value < axis->high + axis->step / 2;
	     value += axis->step) {
		draw_line(f, LEFT, y_of(axis, value), LEFT + width,
			  y_of(axis, value), DRAW_PALE);
		snprintf(text, sizeof(text), format, value);
		draw_text(f, LEFT - 8, y_of(axis, value) + 4, DRAW_END, 11,
			  DRAW_INK, text);
	}
}

static void subtitle(char *text, size_t bytes, const char *what,
		     const struct model_machine *machine)
{
	snprintf(text, bytes, "%s, on %s", what, machine->name);
}

/* ---- speedups ---- */

static const struct {
	enum model_variant variant;
	const char *fill;
	const char *text;
} bars[] = {
	{ MODEL_T3, DRAW_SKY, "T3" },
	{ MODEL_T3_MCA, DRAW_BLUE, "T3-MCA" },
	{ MODEL_IDEAL, DRAW_ORANGE, "ideal overlap" },
};

#define BARS	(sizeof(bars) / sizeof(bars[0]))
#define BAR	13.0
#define GROUP	(BARS * BAR + 15)

static void draw_group(FILE *f, const struct axis *axis, double x,
		       const double *value, const char *name)
{
	char tip[96];
	size_t b;

	for (b = 0; b < BARS; b++) {
		double from = y_of(axis, fmax(value[b], 1));
		double to = y_of(axis, fmin(value[b], 1));

		snprintf(tip, sizeof(tip), "%s, %s: %.3f", name, bars[b].text,
			 value[b]);
		draw_box(f, x + b * BAR, from, BAR - 1.5, to - from,
			 bars[b].fill, tip);
	}
	draw_slanted(f, x + BARS * BAR / 2 + 6, TOP + TALL + 18, 11, name);
}

static struct axis speedup_axis(const struct model_line *line, size_t lines)
{
	struct axis axis = { 1, 1.1, 0.1 };
	size_t i, b;

	for (i = 0; i < lines; i++) {
		for (b = 0; b < BARS; b++) {
			double x = model_speedup(&line[i].answer, bars[b].variant);

			axis.high = fmax(axis.high, ceil(x * 10) / 10);
			axis.low = fmin(axis.low, floor(x * 10) / 10);
		}
	}
	return axis;
}

int model_svg_speedups(const char *path, const struct model_machine *machine,
		       const struct model_line *line, size_t lines)
{
	struct axis axis = speedup_axis(line, lines);
	double width = (lines + 1) * GROUP + 20, x = LEFT;
	double value[BARS], logs[BARS] = { 0 };
	char under[192];
	size_t i, b;
	FILE *f;

	subtitle(under, sizeof(under),
		 "GEMM, reduce-scatter and all-gather; 1 is one after the other", machine);
	f = draw_begin(path, fmax(LEFT + width + 24, 560), TOP + TALL + BELOW,
		       "Speedup of a sublayer over the plain sequence", under);
	if (!f)
		return -errno;
	for (b = 0; b < BARS; b++)
		x = draw_legend(f, x, 80, bars[b].fill, bars[b].text);
	draw_axis(f, &axis, width, "%.1f");
	for (i = 0; i < lines; i++) {
		for (b = 0; b < BARS; b++) {
			value[b] = model_speedup(&line[i].answer, bars[b].variant);
			logs[b] += log(value[b]) / lines;
		}
		draw_group(f, &axis, LEFT + 10 + i * GROUP, value, line[i].name);
	}
	for (b = 0; b < BARS; b++)
		value[b] = exp(logs[b]);
	draw_line(f, LEFT + 8 + lines * GROUP, TOP, LEFT + 8 + lines * GROUP,
		  TOP + TALL, DRAW_GREY);
	draw_group(f, &axis, LEFT + 20 + lines * GROUP, value, "geometric mean");
	draw_line(f, LEFT, y_of(&axis, 1), LEFT + width, y_of(&axis, 1), DRAW_INK);
	return draw_end(f);
}

/* ---- data movement ---- */

static const struct {
	const char *fill;
	const char *text;
} causes[] = {
	{ DRAW_BLUE, "GEMM reads" }, { DRAW_SKY, "GEMM writes" },
	{ DRAW_RED, "reduce-scatter reads" },
	{ DRAW_ORANGE, "reduce-scatter writes and updates" },
	{ DRAW_GREEN, "all-gather reads" }, { DRAW_GREY, "all-gather writes" },
};

#define CAUSES	(sizeof(causes) / sizeof(causes[0]))
#define PILE	18.0
#define PILES	(2 * PILE + 16)

static void by_cause(const struct model_answer *a, bool fused, double *bytes)
{
	const struct model_traffic *g = fused ?
		&a->fused[MODEL_T3_MCA].traffic : &a->gemm.traffic;
	const struct model_traffic *r = fused ? g : &a->rs.traffic;

	bytes[0] = g->gemm_read;
	bytes[1] = g->gemm_write;
	bytes[2] = r->comm_read;
	bytes[3] = r->comm_write;
	bytes[4] = a->ag.traffic.comm_read;
	bytes[5] = a->ag.traffic.comm_write;
}

static void draw_pile(FILE *f, const struct axis *axis, double x,
		      const double *bytes, double whole, const char *name)
{
	double at = 0;
	char tip[128];
	size_t c;

	for (c = 0; c < CAUSES; c++) {
		double to = at + bytes[c] / whole;

		snprintf(tip, sizeof(tip), "%s, %s: %.1f MB", name,
			 causes[c].text, bytes[c] / 1e6);
		draw_box(f, x, y_of(axis, to), PILE - 2,
			 y_of(axis, at) - y_of(axis, to), causes[c].fill, tip);
		at = to;
	}
}

int model_svg_movement(const char *path, const struct model_machine *machine,
		       const struct model_line *line, size_t lines)
{
	struct axis axis = { 0, 1.0, 0.25 };
	double width = lines * PILES + 20, x = LEFT;
	double bytes[CAUSES];
	char under[192];
	size_t i, c;
	FILE *f;

	for (i = 0; i < lines; i++)
		axis.high = fmax(axis.high, ceil(line[i].answer.bytes[MODEL_T3_MCA] /
				 line[i].answer.bytes[MODEL_SEQUENTIAL] * 4) / 4);
	subtitle(under, sizeof(under),
		 "left: one after the other, 1 in all; right: T3-MCA; bytes of one rank's memory",
		 machine);
	f = draw_begin(path, fmax(LEFT + width + 24, 900), TOP + TALL + BELOW,
		       "Data movement by cause", under);
	if (!f)
		return -errno;
	for (c = 0; c < CAUSES; c++)
		x = draw_legend(f, x, 80, causes[c].fill, causes[c].text);
	draw_axis(f, &axis, width, "%.2f");
	for (i = 0; i < lines; i++) {
		const struct model_answer *a = &line[i].answer;
		double whole = a->bytes[MODEL_SEQUENTIAL];

		x = LEFT + 10 + i * PILES;
		by_cause(a, false, bytes);
		draw_pile(f, &axis, x, bytes, whole, line[i].name);
		by_cause(a, true, bytes);
		draw_pile(f, &axis, x + PILE, bytes, whole, line[i].name);
		draw_slanted(f, x + PILE + 6, TOP + TALL + 18, 11, line[i].name);
	}
	return draw_end(f);
}

/* ---- a timeline ---- */

#define LANE	26.0
#define WIDE	900.0
#define NAMES	150.0

/* A shard's colour: around the wheel, darker and paler in turn. */
static void shard_fill(char *fill, size_t bytes, uint32_t shard, uint32_t ranks)
{
	snprintf(fill, bytes, "hsl(%u, 62%%, %u%%)", shard * 360 / ranks,
		 shard % 2 ? 62 : 48);
}

/**
 * struct timeline - a timeline being drawn
 * @f: where
 * @line: the sublayer
 * @whole: seconds of its width
 */
struct timeline {
	FILE *f;
	const struct model_line *line;
	double whole;
};

static void draw_span(const struct timeline *t, double y, double begin,
		      double end, const char *fill, const char *tip)
{
	double from = LEFT + NAMES + WIDE * begin / t->whole;
	double to = LEFT + NAMES + WIDE * end / t->whole;

	draw_box(t->f, from, y, fmax(to - from, 0.3), LANE - 6, fill, tip);
}

static void draw_lane(const struct timeline *t, double y, const char *name)
{
	draw_text(t->f, LEFT + NAMES - 12, y + LANE / 2 + 1, DRAW_END, 12,
		  DRAW_INK, name);
	draw_box(t->f, LEFT + NAMES, y, WIDE, LANE - 6, "#f6f7f8", NULL);
}

/*
 * Spans of one kind and shard that follow each other within a gap that nobody
 * sees are one. Return: the last of them.
 */
static uint32_t join(const struct model_result *r, uint32_t i,
		     struct model_span *joined, double gap)
{
	uint32_t last = i;

	for (i++; i < r->spans && joined->kind != MODEL_SPAN_STAGE; i++) {
		const struct model_span *s = &r->span[i];

		if (s->kind != joined->kind)
			continue;
		if (s->shard != joined->shard || s->begin > joined->end + gap)
			break;
		joined->end = s->end;
		last = i;
	}
	return last;
}

static void draw_spans(const struct timeline *t, double y,
		       enum model_span_kind kind, const char *name)
{
	const struct model_result *r = &t->line->answer.fused[MODEL_T3_MCA];
	uint32_t ranks = t->line->sublayer.ranks;
	char fill[40], tip[96];
	uint32_t i;

	draw_lane(t, y, name);
	for (i = 0; i < r->spans; i++) {
		const struct model_span *s = &r->span[i];
		struct model_span joined = *s;

		if (s->kind != kind)
			continue;
		i = join(r, i, &joined, t->whole / WIDE / 2);
		s = &joined;
		snprintf(tip, sizeof(tip), "%s %u: %.1f to %.1f us",
			 kind == MODEL_SPAN_STAGE ? "stage" : "shard", s->shard,
			 s->begin * 1e6, s->end * 1e6);
		if (kind == MODEL_SPAN_STAGE)
			snprintf(fill, sizeof(fill), "%s",
				 s->shard % 2 ? DRAW_GREY : "#5c6670");
		else
			shard_fill(fill, sizeof(fill), s->shard, ranks);
		draw_span(t, y, s->begin, s->end, fill, tip);
	}
}

static void draw_plain(const struct timeline *t, double y)
{
	const struct model_answer *a = &t->line->answer;
	double gemm = a->gemm.time, rs = gemm + a->rs.time;

	draw_lane(t, y, "one after the other");
	draw_span(t, y, 0, gemm, DRAW_BLUE, "GEMM");
	draw_span(t, y, gemm, rs, DRAW_ORANGE, "reduce-scatter");
	draw_span(t, y, rs, a->time[MODEL_SEQUENTIAL], DRAW_GREEN, "all-gather");
}

static void draw_scale(const struct timeline *t, double y)
{
	double step = pow(10, floor(log10(t->whole)));
	double at;
	char text[32];

	while (t->whole / step < 6)
		step /= 2;
	for (at = 0; at <= t->whole; at += step) {
		double x = LEFT + NAMES + WIDE * at / t->whole;

		draw_line(t->f, x, TOP - 10, x, y, DRAW_PALE);
		snprintf(text, sizeof(text), "%.0f us", at * 1e6);
		draw_text(t->f, x, y + 16, DRAW_MIDDLE, 11, DRAW_INK, text);
	}
}

int model_svg_timeline(const char *path, const struct model_machine *machine,
		       const struct model_line *line)
{
	const struct model_answer *a = &line->answer;
	struct timeline t = { NULL, line, a->time[MODEL_SEQUENTIAL] };
	double y = TOP, x = LEFT + NAMES;
	char title[128], under[192];

	snprintf(title, sizeof(title), "%s over time: %.0f us become %.0f us",
		 line->name, a->time[MODEL_SEQUENTIAL] * 1e6,
		 a->time[MODEL_T3_MCA] * 1e6);
	subtitle(under, sizeof(under),
		 "rank 0; stores and transfers are coloured by shard", machine);
	t.f = draw_begin(path, LEFT + NAMES + WIDE + 40, TOP + 6 * LANE + 60,
			 title, under);
	if (!t.f)
		return -errno;
	x = draw_legend(t.f, x, 80, DRAW_BLUE, "GEMM");
	x = draw_legend(t.f, x, 80, DRAW_ORANGE, "reduce-scatter");
	draw_legend(t.f, x, 80, DRAW_GREEN, "all-gather");
	draw_scale(&t, TOP + 6 * LANE + 10);
	draw_plain(&t, y);
	y += LANE + 10;
	draw_spans(&t, y, MODEL_SPAN_STAGE, "T3: stages");
	draw_spans(&t, y + LANE, MODEL_SPAN_STORE, "stores at home");
	draw_spans(&t, y + 2 * LANE, MODEL_SPAN_REMOTE, "stores at the neighbour");
	draw_spans(&t, y + 3 * LANE, MODEL_SPAN_TRANSFER, "triggered transfers");
	draw_lane(&t, y + 4 * LANE, "all-gather");
	draw_span(&t, y + 4 * LANE, a->fused[MODEL_T3_MCA].time,
		  a->time[MODEL_T3_MCA], DRAW_GREEN, "all-gather");
	return draw_end(t.f);
}
