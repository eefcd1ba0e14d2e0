/* show_check.h: prints the results of the checks of `vernier show --check`. */
#pragma once

#include "capture/show/check.h"

#include <stdio.h>

/* Prints one line per finding, and one of counts. */
void vn_show_check(const vn_file_check *c, FILE *out);
void vn_show_counts(const vn_file_check *c, FILE *out); /* that line alone, without a newline */
/* Prints the same as JSON, schema "vernier-check/1". Returns false if it cannot be written. */
bool vn_show_check_json(const vn_recording *r, const vn_file_check *c, FILE *out);
