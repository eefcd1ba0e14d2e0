/* scenario.h: reads a file of prompts, each with a name and settings of its own.
 *
 * A text file has one prompt a line. A JSONL file (its first character is "{") has one object a
 * line, with the keys `prompt` (text) or `ids` (token ids), and, if wanted, `name`, `decode`,
 * `temperature` and `seed`. Empty lines are skipped. Without a name, a prompt is called by its
 * number: 001, 002...
 */
#pragma once

#include "libref/base/error.h"

#include <stdint.h>

typedef struct vn_scenario {
	char    *name; /* the recording is NAME.h5: no '/', no '.' at its start, at most 200 bytes */
	int      line; /* of the file, from 1 */
	char    *text; /* the prompt; NULL: the ids are given */
	int32_t *ids;  /* (n) */
	int64_t  n;
	int64_t  decode;      /* -1: not given */
	double   temperature; /* -1: not given */
	int64_t  seed;        /* -1: not given */
} vn_scenario;

/* Reads the file at path, at most 64 MiB. Names are unique. The caller frees with
 * vn_scenarios_free. VN_ERR_USAGE: an empty file; VN_ERR_FORMAT: a line that is wrong, with its
 * number. */
vn_status vn_scenarios_read(const char *path, vn_scenario **s, int *n, vn_error *err);
void      vn_scenarios_free(vn_scenario *s, int n);
