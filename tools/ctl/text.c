// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl: what it looks like.
 */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl.h"

static bool coloured(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && term &&
	       strcmp(term, "dumb");
}

const char *colour(enum colour c)
{
	static const char * const escape[] = {
		[PLAIN] = "\033[0m", [BOLD] = "\033[1m", [DIM] = "\033[2m",
		[RED] = "\033[31m", [GREEN] = "\033[32m",
		[YELLOW] = "\033[33m",
	};
	static int on = -1;

	if (on < 0)
		on = coloured();
	return on ? escape[c] : "";
}

int width(void)
{
	const char *wish = getenv("COLUMNS");
	struct winsize size;

	if (wish && atoi(wish) >= 40)
		return atoi(wish);
	if (!isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40)
		return 80;
	return size.ws_col;
}

void table_init(struct table *t, int columns, unsigned int right)
{
	*t = (struct table){ .columns = columns, .right = right };
}

void table_row(struct table *t, ...)
{
	va_list args;
	int c;

	t->cells = realloc(t->cells, sizeof(char *) * t->columns * (t->rows + 1));
	if (!t->cells)
		errx(EXIT_NOT_FINE, "no memory");
	va_start(args, t);
	for (c = 0; c < t->columns; c++)
		t->cells[t->rows * t->columns + c] = va_arg(args, char *);
	va_end(args);
	t->rows++;
}

static int column_width(const struct table *t, int c)
{
	int r, most = 0;

	for (r = 0; r < t->rows; r++) {
		int n = strlen(t->cells[r * t->columns + c]);

		most = n > most ? n : most;
	}
	return most;
}

/* The last cell of a row that is not empty: no blanks follow it. */
static int last_cell(const struct table *t, int r)
{
	int c = t->columns - 1;

	while (c > 0 && !*t->cells[r * t->columns + c])
		c--;
	return c;
}

static void print_row(const struct table *t, int r, const int *widths)
{
	int c, last = last_cell(t, r);

	for (c = 0; c <= last; c++) {
		const char *cell = t->cells[r * t->columns + c];
		int n = t->right >> c & 1 ? widths[c] :
			c < last ? -widths[c] : 0;

		printf("%s%*s", c ? "  " : "", n, cell);
	}
	putchar('\n');
}

void table_print(struct table *t)
{
	int *widths = must_alloc(t->columns, sizeof(*widths));
	int i;

	for (i = 0; i < t->columns; i++)
		widths[i] = column_width(t, i);
	for (i = 0; i < t->rows; i++) {
		fputs(i ? "" : colour(BOLD), stdout);
		print_row(t, i, widths);
		fputs(i ? "" : colour(PLAIN), stdout);
	}
	for (i = 0; i < t->rows * t->columns; i++)
		free(t->cells[i]);
	free(t->cells);
	free(widths);
	*t = (struct table){ 0 };
}

void wrap(int first, int indent, const char *text)
{
	int at = first, most = width();

	while (*text) {
		int n = strcspn(text, " ");

		if (at > first && at + 1 + n > most) {
			printf("\n%*s", indent, "");
			first = indent;
			at = indent;
		} else if (at > first) {
			putchar(' ');
			at++;
		}
		printf("%.*s", n, text);
		at += n;
		text += n + strspn(text + n, " ");
	}
	putchar('\n');
}

char *bytes_text(uint64_t bytes)
{
	static const char * const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double x = bytes;
	int u = 0;

	while (x >= 1024 && u < 4) {
		x /= 1024;
		u++;
	}
	return u ? text_of("%.1f %s", x, unit[u]) :
		   text_of("%llu B", (unsigned long long)bytes);
}

void print_json(struct json_object *json)
{
	puts(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY |
					    JSON_C_TO_STRING_SPACED |
					    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(json);
}
