// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reading JSON files.
 */
#include <math.h>
#include <stdio.h>

#include "json.h"

struct json_object *model_json_read(const char *path, char *why, size_t bytes)
{
	struct json_object *j = json_object_from_file(path);

	if (!j)
		snprintf(why, bytes, "%s: %s", path, json_util_get_last_err());
	return j;
}

double model_json_number(struct json_object *j, const char *key)
{
	struct json_object *x;

	if (!json_object_object_get_ex(j, key, &x) ||
	    !(json_object_is_type(x, json_type_double) ||
	      json_object_is_type(x, json_type_int)))
		return NAN;
	return json_object_get_double(x);
}

const char *model_json_text(struct json_object *j, const char *key,
			    const char *none)
{
	struct json_object *x;

	if (!json_object_object_get_ex(j, key, &x) ||
	    !json_object_is_type(x, json_type_string))
		return none;
	return json_object_get_string(x);
}
