/* left_out.h: tensors that a run left out of its recording because they agreed with a reference
 * (`capture --against`): one line of JSON each, in /run/left_out (specs/checkpoint.md).
 *
 * Owner   vn_left_out_finish frees what a vn_left_out holds; names are interned.
 */
#pragma once

#include "libref/base/digest.h"
#include "libref/base/error.h"
#include "libref/base/tensor.h"

enum { VN_MEASURES_MAX = 40 };

typedef struct vn_said_measure {
	const char *name; /* "nmse" */
	double      value;
} vn_said_measure;

typedef struct vn_left_out {
	const char      *name; /* "layer3.q_rope" */
	int              step;
	vn_dtype         dtype;
	vn_shape         shape;
	vn_digest        digest, reference; /* of the numbers left out; of those they were judged by */
	int              n;
	vn_said_measure *measure; /* (n) what was measured; none: the digests are equal */
} vn_left_out;

/* Returns the line, which the caller frees; NULL: no memory. Values that are not finite are left
 * out. */
char *vn_left_out_line(const vn_left_out *l);
/* The lines of a run; zeroed: none. */
typedef struct vn_left_out_lines {
	char  **line;
	int64_t n;
} vn_left_out_lines;
vn_status          vn_left_out_add(vn_left_out_lines *to, const vn_left_out *l, vn_error *err);
void               vn_left_out_lines_finish(vn_left_out_lines *lines);
/* Reads a line from a file. Returns NULL, or what is wrong with it; "no memory" if that is the
 * reason. */
const char        *vn_left_out_read(const char *line, vn_left_out *l);
void               vn_left_out_finish(vn_left_out *l); /* l may be zeroed */
/* Sorts by step, then name; finds one in a sorted list, or returns NULL. */
void               vn_left_out_sort(vn_left_out *list, int n);
const vn_left_out *vn_left_out_find(const vn_left_out *list, int n, int step, const char *name);
/* Returns a measure by name; NaN: not stated. */
double             vn_left_out_measure(const vn_left_out *l, const char *name);
