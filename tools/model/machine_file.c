// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reading machine descriptions: one "key = value unit  # source" a line.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine_file.h"

#define FILE_BYTES	65536

/**
 * struct key - a parameter that a file may have
 * @name: as in the file
 * @at: offset in struct model_machine
 * @unit: what must follow the number; "" nothing
 * @scale: the unit in seconds, bytes ...
 * @least: in the unit
 * @most: likewise
 * @whole: only whole numbers
 * @words: the words that stand for 0, 1, 2 ..., in place of a number
 * @byword: the default in the unit, or NAN: must be given
 */
struct key {
	const char *name;
	size_t at;
	const char *unit;
	double scale;
	double least;
	double most;
	bool whole;
	const char *const *words;
	double byword;
};

static const char *const topologies[] = {
	"ring", "full", "switch", "pcie", "shared", NULL
};

static const char *const policies[] = {
	"round-robin", "compute-first", NULL
};

static const char *const layouts[] = { "row", "column", NULL };
static const char *const yes[] = { "no", "yes", NULL };

#define US	(1 / 1e6)
#define NS	(1 / 1e9)
#define AT(field)	offsetof(struct model_machine, field)

static const struct key keys[] = {
	{ "ranks", AT(ranks), "", 1, 1, 4096, true, NULL, NAN },
	{ "compute.units", AT(units), "", 1, 1, 4096, true, NULL, NAN },
	{ "compute.clock", AT(clock), "GHz", 1e9, 0.01, 100, false, NULL, NAN },
	{ "compute.f16", AT(flops_f16), "flop/clock", 1, 1, 1e6, false, NULL, NAN },
	{ "compute.f32", AT(flops_f32), "flop/clock", 1, 1, 1e6, false, NULL, NAN },
	{ "compute.f64", AT(flops_f64), "flop/clock", 1, 1, 1e6, false, NULL, 1 },
	{ "compute.efficiency", AT(efficiency), "%", 0.01, 1, 100, false, NULL, NAN },
	{ "compute.unaligned", AT(unaligned), "%", 0.01, 1, 100, false, NULL, 100 },
	{ "compute.launch", AT(launch), "us", US, 0, 1e6, false, NULL, 0 },
	{ "tile.m", AT(tile_m), "", 1, 1, 4096, true, NULL, NAN },
	{ "tile.n", AT(tile_n), "", 1, 1, 4096, true, NULL, NAN },
	{ "tile.k", AT(tile_k), "", 1, 1, 4096, true, NULL, NAN },
	{ "tile.prefetch", AT(prefetch), "", 1, 2, 64, true, NULL, NAN },
	{ "tile.layout", AT(layout), "", 1, 0, 0, false, layouts, 0 },
	{ "llc.size", AT(llc), "MiB", 1 << 20, 0.1, 1e5, false, NULL, NAN },
	{ "llc.ways", AT(llc_ways), "", 1, 1, 256, true, NULL, NAN },
	{ "dram.rate", AT(dram), "GB/s", 1e9, 0.1, 1e6, false, NULL, NAN },
	{ "dram.latency", AT(dram_latency), "ns", NS, 0, 1e6, false, NULL, NAN },
	{ "dram.queue", AT(dram_queue), "", 1, 1, 1e5, true, NULL, NAN },
	{ "dram.channels", AT(dram_channels), "", 1, 1, 1e4, true, NULL, NAN },
	{ "dram.access", AT(dram_access), "B", 1, 1, 4096, true, NULL, 64 },
	{ "dram.near-memory", AT(near_memory), "", 1, 0, 0, false, yes, NAN },
	{ "dram.update", AT(update), "writes", 1, 1, 16, false, NULL, 1 },
	{ "link.topology", AT(topology), "", 1, 0, 0, false, topologies, NAN },
	{ "link.rate", AT(link), "GB/s", 1e9, 0.01, 1e5, false, NULL, NAN },
	{ "link.latency", AT(link_latency), "ns", NS, 0, 1e7, false, NULL, NAN },
	{ "link.root", AT(root), "GB/s", 1e9, 0.01, 1e5, false, NULL, 1e5 },
	{ "dma.engines", AT(dma_engines), "", 1, 1, 64, true, NULL, NAN },
	{ "dma.fixed", AT(dma_fixed), "us", US, 0, 1e6, false, NULL, NAN },
	{ "sum.rate", AT(sum_rate), "GB/s", 1e9, 0.01, 1e5, false, NULL, 1e5 },
	{ "sum.units", AT(sum_units), "", 1, 0, 4096, true, NULL, 0 },
	{ "sum.steal", AT(sum_steal), "%", 0.01, 0, 100, false, NULL, 0 },
	{ "net.rate", AT(net), "GB/s", 1e9, 0.01, 1e5, false, NULL, 0.01 },
	{ "net.latency", AT(net_latency), "ns", NS, 0, 1e7, false, NULL, 0 },
	{ "collective.launch", AT(comm_launch), "us", US, 0, 1e6, false, NULL, 0 },
	{ "collective.unit", AT(copy_rate), "GB/s", 1e9, 0.01, 1e5, false, NULL, 1e5 },
	{ "memory.policy", AT(policy), "", 1, 0, 0, false, policies, NAN },
	{ "memory.starve", AT(starve), "%", 0.01, 0, 50, false, NULL, NAN },
	{ "tracker.entries", AT(tracker), "", 1, 0, 1e7, true, NULL, 0 },
};

#define KEYS	(sizeof(keys) / sizeof(keys[0]))

/**
 * struct parse - a file being read
 * @file: out
 * @name: for messages
 * @line: number of the line
 * @why: out: the cause
 * @bytes: size of @why
 * @seen: the line of each key, 0: not yet
 */
struct parse {
	struct model_file *file;
	const char *name;
	int line;
	char *why;
	size_t bytes;
	int seen[KEYS];
};

static __attribute__((format(printf, 2, 3)))
int refuse(struct parse *p, const char *format, ...)
{
	int n = snprintf(p->why, p->bytes, "%s:%d: ", p->name, p->line);
	va_list args;

	va_start(args, format);
	if (n >= 0 && (size_t)n < p->bytes)
		vsnprintf(p->why + n, p->bytes - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		;
	s[n] = 0;
	return s;
}

static double *field(struct model_machine *m, const struct key *key)
{
	return (double *)((char *)m + key->at);
}

static int parse_word(struct parse *p, const struct key *key, const char *text)
{
	char allowed[100] = "";
	size_t i;

	for (i = 0; key->words[i]; i++) {
		if (!strcmp(key->words[i], text)) {
			*field(&p->file->machine, key) = (double)i;
			return 0;
		}
		if (i)
			strcat(allowed, ", ");
		strcat(allowed, key->words[i]);
	}
	return refuse(p, "%s is \"%s\", allowed are %s", key->name, text, allowed);
}

static int parse_number(struct parse *p, const struct key *key, char *text)
{
	char *end, *unit;
	double x;

	errno = 0;
	x = strtod(text, &end);
	if (end == text || errno || !isfinite(x))
		return refuse(p, "%s is \"%s\", not a number", key->name, text);
	unit = trim(end);
	if (strcmp(unit, key->unit))
		return refuse(p, "%s has the unit \"%s\", it takes \"%s\"",
			      key->name, unit, key->unit);
	if (x < key->least || x > key->most)
		return refuse(p, "%s is %g, allowed are %g to %g%s%s", key->name,
			      x, key->least, key->most, *unit ? " " : "", unit);
	if (key->whole && x != floor(x))
		return refuse(p, "%s is %g, allowed are whole numbers", key->name, x);
	*field(&p->file->machine, key) = x * key->scale;
	return 0;
}

static int keep(struct parse *p, const char *key, const char *text,
		const char *source)
{
	struct model_parameter *q;

	if (!*source)
		return refuse(p, "%s has no source: \"# where it comes from\" must follow",
			      key);
	if (strlen(source) >= sizeof(q->source) || strlen(text) >= sizeof(q->text))
		return refuse(p, "%s: the line is too long", key);
	/* There are more entries than keys, and no key comes twice. */
	q = &p->file->parameter[p->file->parameters++];
	strcpy(q->key, key);
	strcpy(q->text, text);
	strcpy(q->source, source);
	return 0;
}

static int parse_name(struct parse *p, const char *text)
{
	struct model_machine *m = &p->file->machine;
	size_t n = strlen(text);

	if (*m->name)
		return refuse(p, "name is given twice");
	if (!n || n >= sizeof(m->name) || strcspn(text, " \t\"'<>&") != n)
		return refuse(p, "name is \"%s\", allowed is one word of up to %zu letters",
			      text, sizeof(m->name) - 1);
	strcpy(m->name, text);
	return 0;
}

static int parse_line(struct parse *p, char *line)
{
	char *hash = strchr(line, '#');
	char *source = hash ? hash + 1 : line + strlen(line);
	char *equals, *name, *text;
	size_t i;
	int ret;

	if (hash)
		*hash = 0;
	name = trim(line);
	if (!*name)
		return 0;
	equals = strchr(name, '=');
	if (!equals)
		return refuse(p, "\"%s\" is not \"key = value\"", name);
	*equals = 0;
	name = trim(name);
	text = trim(equals + 1);
	if (!strcmp(name, "name"))
		return parse_name(p, text);
	for (i = 0; i < KEYS && strcmp(keys[i].name, name); i++)
		;
	if (i == KEYS)
		return refuse(p, "there is no key \"%s\"", name);
	if (p->seen[i])
		return refuse(p, "%s is given twice, first in line %d", name,
			      p->seen[i]);
	p->seen[i] = p->line;
	ret = keep(p, name, text, trim(source));
	if (ret)
		return ret;
	return keys[i].words ? parse_word(p, &keys[i], text) :
			       parse_number(p, &keys[i], text);
}

/* What one line alone can't show. */
static int check(struct parse *p)
{
	const struct model_machine *m = &p->file->machine;
	size_t i;

	if (!*m->name)
		return refuse(p, "name is missing");
	for (i = 0; i < KEYS; i++) {
		if (p->seen[i])
			continue;
		if (isnan(keys[i].byword))
			return refuse(p, "%s is missing", keys[i].name);
		*field(&p->file->machine, &keys[i]) =
			keys[i].byword * keys[i].scale;
	}
	if (m->sum_units >= m->units)
		return refuse(p, "sum.units is %g, allowed are fewer than compute.units, %g",
			      m->sum_units, m->units);
	if (!m->near_memory && m->sum_rate >= 1e14)
		return refuse(p, "sum.rate is missing: dram.near-memory is \"no\", so units add");
	if (m->near_memory && m->sum_units > 0)
		return refuse(p, "sum.units is %g, allowed is 0 where dram.near-memory is \"yes\"",
			      m->sum_units);
	return 0;
}

int model_file_parse(struct model_file *file, const char *name, char *text,
		     char *why, size_t bytes)
{
	struct parse p = {
		.file = file, .name = name, .why = why, .bytes = bytes,
	};
	char *line, *next;
	int ret;

	memset(file, 0, sizeof(*file));
	for (line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		p.line++;
		ret = parse_line(&p, line);
		if (ret)
			return ret;
	}
	return check(&p);
}

/* The text of a machine that is shipped, or NULL. */
static const char *shipped(const char *name)
{
	size_t i;

	for (i = 0; model_shipped[i].name; i++)
		if (!strcmp(model_shipped[i].name, name))
			return model_shipped[i].text;
	return NULL;
}

static int read_text(const char *path, char *text, char *why, size_t bytes)
{
	FILE *f = fopen(path, "re");
	int ret = f ? 0 : -errno;
	size_t n = f ? fread(text, 1, FILE_BYTES + 1, f) : 0;

	if (f && ferror(f))
		ret = -EIO;
	if (f)
		fclose(f);
	if (ret) {
		snprintf(why, bytes, "%s: %s", path, strerror(-ret));
		return ret;
	}
	if (n > FILE_BYTES) {
		snprintf(why, bytes, "%s: over %d bytes", path, FILE_BYTES);
		return -E2BIG;
	}
	if (memchr(text, 0, n)) {
		snprintf(why, bytes, "%s: holds a NUL byte, it is not text", path);
		return -EINVAL;
	}
	text[n] = 0;
	return 0;
}

int model_file_read(struct model_file *file, const char *path, char *why,
		    size_t bytes)
{
	const char *known = shipped(path);
	char *text = known ? strdup(known) : malloc(FILE_BYTES + 1);
	int ret = 0;

	if (!text) {
		snprintf(why, bytes, "%s: no memory", path);
		return -ENOMEM;
	}
	if (!known)
		ret = read_text(path, text, why, bytes);
	if (!ret)
		ret = model_file_parse(file, path, text, why, bytes);
	free(text);
	return ret;
}

bool model_file_fitted(const struct model_parameter *parameter, const char *id)
{
	static const char word[] = "fitted to ";
	const char *at = parameter->source + sizeof(word) - 1;
	size_t n;

	if (strncmp(parameter->source, word, sizeof(word) - 1))
		return false;
	for (; *at && *at != ':'; at += n + strspn(at + n, ", ")) {
		n = strcspn(at, ", :");
		if (strlen(id) == n && !strncmp(at, id, n))
			return true;
		if (at[n] == ':')
			return false;
	}
	return false;
}

double model_unit_rate(const struct model_machine *m, uint32_t bytes)
{
	double flops = bytes == 2 ? m->flops_f16 :
		       bytes == 4 ? m->flops_f32 : m->flops_f64;

	return flops * m->clock * m->efficiency;
}
