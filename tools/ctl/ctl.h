/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * t3ctl: what its parts share. One process, one thread.
 */
#ifndef T3_TOOLS_CTL_H
#define T3_TOOLS_CTL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <argp.h>
#include <json-c/json.h>

/* Exit statuses, of all commands. */
#define EXIT_FINE	0
#define EXIT_NOT_FINE	1	/* refused, not there, or doctor found a problem */
#define EXIT_USAGE	2

/**
 * struct options - what was asked for before the command's name
 * @json: print JSON
 * @sysroot: before every path; "" is the running system
 */
struct options {
	bool json;
	const char *sysroot;
};

extern struct options options;

/* For a command's own argp: --json, after its name too. */
extern const struct argp_child common[];

/* Each command: its own arguments from argv[0], its name. */
int cmd_ls(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* --- files.c -------------------------------------------------------------- */

/**
 * path_of - a path below the sysroot
 * @fmt: as of printf, an absolute path
 *
 * Return: a string to be freed. Ends the program where there is no memory.
 */
char *path_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* As path_of(), but no path: the bare text. */
char *text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * read_text - a file's whole text
 * @path: as path_of() gave it
 *
 * Return: the text, to be freed, without a newline at its end; NULL where it
 * can't be read (errno says why).
 */
char *read_text(const char *path);

/* All that is left of a stream, as read_text() gives it. */
char *read_stream(FILE *f);

/* read_text() of a path that is formatted here. */
char *read_text_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Like malloc() and strdup(), but never NULL. The memory is zeroed. */
void *must_alloc(size_t n, size_t size);
char *must_strdup(const char *s);
/* Like realloc(), for @n things of @size bytes; never NULL, what is new is not
 * zeroed.
 */
void *must_grow(void *list, size_t n, size_t size);

/* --- text.c --------------------------------------------------------------- */

enum colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW };

/**
 * colour - begin or end a colour on stdout
 * @c: which; PLAIN ends it
 *
 * Return: the escape sequence, or "" where stdout is no terminal, TERM is dumb
 * or NO_COLOR is set.
 */
const char *colour(enum colour c);

/* $COLUMNS, or the terminal's; 80 where it is none. */
int width(void);

/**
 * struct table - text in columns
 * @cells: rows * @columns strings, owned
 * @rows: how many
 * @columns: how many
 * @right: bit c is set: column c is aligned to the right
 */
struct table {
	char **cells;
	int rows;
	int columns;
	unsigned int right;
};

/* The first row is the headings. */
void table_init(struct table *t, int columns, unsigned int right);
/* One more row; as many strings as there are columns, each freed with it. */
void table_row(struct table *t, ...);
/* Prints it, two spaces between columns, nothing at a line's end; frees it. */
void table_print(struct table *t);

/**
 * wrap - print words so that no line is longer than the terminal
 * @first: columns that the cursor has used already
 * @indent: columns before each further line
 * @text: the words
 */
void wrap(int first, int indent, const char *text);

/* "64.0 MiB"; to be freed. */
char *bytes_text(uint64_t bytes);

/* Prints and frees. */
void print_json(struct json_object *json);

#endif /* T3_TOOLS_CTL_H */
