// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Drawing SVG.
 */
#include <errno.h>
#include <string.h>

#include "draw.h"

/* Text comes from names that may hold anything. */
static void put_escaped(FILE *f, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		default:
			fputc((unsigned char)*text < ' ' ? ' ' : *text, f);
		}
	}
}

FILE *draw_begin(const char *path, double width, double height,
		 const char *title, const char *subtitle)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return NULL;
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n",
		width, height, width, height);
	fputs("<title>", f);
	put_escaped(f, title);
	fputs("</title>\n", f);
	draw_box(f, 0, 0, width, height, "#ffffff", NULL);
	fprintf(f, "<g font-weight=\"bold\">");
	draw_text(f, 24, 34, DRAW_START, 18, DRAW_INK, title);
	fprintf(f, "</g>\n");
	draw_text(f, 24, 54, DRAW_START, 12, "#57606a", subtitle);
	return f;
}

int draw_end(FILE *f)
{
	int bad;

	fputs("</svg>\n", f);
	bad = ferror(f);
	if (fclose(f))
		return -errno;
	return bad ? -EIO : 0;
}

void draw_box(FILE *f, double x, double y, double width, double height,
	      const char *fill, const char *tip)
{
	fprintf(f, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"",
		x, y, width, height, fill);
	if (!tip) {
		fputs("/>\n", f);
		return;
	}
	fputs("><title>", f);
	put_escaped(f, tip);
	fputs("</title></rect>\n", f);
}

void draw_line(FILE *f, double x1, double y1, double x2, double y2,
	       const char *stroke)
{
	fprintf(f, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n",
		x1, y1, x2, y2, stroke);
}

void draw_text(FILE *f, double x, double y, enum draw_anchor anchor,
	       double size, const char *fill, const char *text)
{
	static const char *const names[] = { "start", "middle", "end" };

	fprintf(f, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\" font-size=\"%.0f\" fill=\"%s\">",
		x, y, names[anchor], size, fill);
	put_escaped(f, text);
	fputs("</text>\n", f);
}

void draw_slanted(FILE *f, double x, double y, double size, const char *text)
{
	fprintf(f, "<text transform=\"translate(%.2f %.2f) rotate(-45)\" text-anchor=\"end\" font-size=\"%.0f\" fill=\"%s\">",
		x, y, size, DRAW_INK);
	put_escaped(f, text);
	fputs("</text>\n", f);
}

double draw_legend(FILE *f, double x, double y, const char *fill,
		   const char *text)
{
	draw_box(f, x, y - 10, 12, 12, fill, NULL);
	draw_text(f, x + 17, y, DRAW_START, 12, DRAW_INK, text);
	return x + 17 + 6.6 * (double)strlen(text) + 22;
}
