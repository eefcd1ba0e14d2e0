/* show_json.h: prints a recording for `vernier show` as JSON. */
#pragma once

#include "capture/show/check.h"
#include "libref/base/json.h"

#include <stdio.h>

/* Prints the whole recording, a step of it (step not NULL), or entry i if i >= 0 (data: its
 * numbers), as JSON; schema "vernier-show/1". Returns false if it cannot be written. */
bool vn_show_json(const vn_recording *r, const vn_step *step, int i, const void *data, FILE *out);

/* Returns a text of a file as JSON, with bytes that are not UTF-8 as \xff; "" and NULL: null. */
json_t *vn_show_text(const char *s);

/* Returns what to do next after a recording was checked: commands for a shell, the most useful
 * first. */
json_t *vn_show_next_after(const vn_recording *r, const vn_file_check *c);
