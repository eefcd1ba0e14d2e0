/* name_map_internal.h: shared by the files of name_map.h; included nowhere else. */
#pragma once

#include "capture/names/name_map.h"

enum { VN_MAP_LEFT = -1, VN_MAP_GONE = -2 };

/* What a map does with one tensor. */
typedef struct vn_name_map_outcome {
	int  entry, rule, n; /* rule VN_MAP_LEFT: the tensor stays as it is. n: the value of {n} */
	int  part;           /* -1: the whole tensor */
	char name[VN_NAME_MAX];
} vn_name_map_outcome;

typedef struct vn_name_map_job {
	const vn_name_map   *m;
	vn_recording        *r, *made;
	vn_name_map_use     *use;
	vn_error            *err;
	int                 *rule, *n; /* (entries) index of the rule, or VN_MAP_LEFT, VN_MAP_GONE */
	vn_name_map_outcome *out;
	int                  n_out;
	int                  unknown; /* 1 + a rule that depends on the model, which is not known; 0 */
	/* (rules) which name an `either` chose: 0, 1; -1: not yet decided */
	int                 *chosen;
} vn_name_map_job;

/* Fails with "MAP:LINE:COLUMN: RECORDING: ...". */
__attribute__((format(printf, 3, 4))) vn_status vn_name_map_fail(const vn_name_map_job *j, int rule, const char *format,
                                                                 ...);

/* Is the number that {n+K} in a pattern makes of this n at least 0? True without a pattern (NULL)
 * or without such a number. */
bool      vn_name_map_counts_from(const char *pattern, int n);
/* Writes the name of term k of `plus` for a tensor called `name`: with the same number, in as many
 * digits. Returns false if it does not fit. */
bool      vn_name_map_term(const vn_name_map_rule *rule, int k, const char *name, char *to, size_t room);
/* Adds one tensor to j->made. */
vn_status vn_name_map_place(vn_name_map_job *j, const vn_name_map_outcome *o);
