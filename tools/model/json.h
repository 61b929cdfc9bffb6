/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Reading JSON files.
 */
#ifndef T3_MODEL_JSON_H
#define T3_MODEL_JSON_H

#include <json-c/json.h>
#include <stddef.h>

/**
 * model_json_read - read a file
 * @path: which
 * @why: out: the cause
 * @bytes: size of @why
 *
 * Return: the value, for json_object_put(); NULL on failure.
 */
struct json_object *model_json_read(const char *path, char *why, size_t bytes);

/* A member's number, or NAN where it has none. */
double model_json_number(struct json_object *j, const char *key);

/* A member's text, or @none where it has none. */
const char *model_json_text(struct json_object *j, const char *key,
			    const char *none);

#endif /* T3_MODEL_JSON_H */
