/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Drawing SVG: a page, boxes, lines, words.
 */
#ifndef T3_MODEL_DRAW_H
#define T3_MODEL_DRAW_H

#include <stdio.h>

/* Colours that people with any sight can tell apart (Okabe and Ito). */
#define DRAW_BLUE	"#0072b2"
#define DRAW_SKY	"#56b4e9"
#define DRAW_GREEN	"#009e73"
#define DRAW_ORANGE	"#e69f00"
#define DRAW_RED	"#d55e00"
#define DRAW_PINK	"#cc79a7"
#define DRAW_GREY	"#8a9199"
#define DRAW_PALE	"#e6e9ec"
#define DRAW_INK	"#22272e"

enum draw_anchor { DRAW_START, DRAW_MIDDLE, DRAW_END };

/**
 * draw_begin - begin a file
 *
 * Return: the file, or NULL with errno.
 */
FILE *draw_begin(const char *path, double width, double height,
		 const char *title, const char *subtitle);

/**
 * draw_end - end it
 *
 * Return: 0 or a negative errno.
 */
int draw_end(FILE *f);

void draw_box(FILE *f, double x, double y, double width, double height,
	      const char *fill, const char *tip);
void draw_line(FILE *f, double x1, double y1, double x2, double y2,
	       const char *stroke);
void draw_text(FILE *f, double x, double y, enum draw_anchor anchor,
	       double size, const char *fill, const char *text);

/* Words that go up from (x, y) at 45 degrees, ending there. */
void draw_slanted(FILE *f, double x, double y, double size, const char *text);

/* One entry of a legend; where the next begins. */
double draw_legend(FILE *f, double x, double y, const char *fill,
		   const char *text);

#endif /* T3_MODEL_DRAW_H */
