/* window.h: reads a pair of tensors that is too large for memory in parts, where it is measured.
 *
 * A tensor that is stored as it is measured is mapped. One whose tokens are spread over the file
 * (heads before tokens: the kernel maps up to 2 MB around each), one with a view, and one gathered
 * from several are read, some rows at a time, into memory of the thread that measures it.
 *
 * Threads  each thread needs a window of its own.
 */
#pragma once

#include "compare/metrics/pair.h"

/* Rows [row, row + rows) of outer indices [outer, outer + outers). */
typedef struct vn_row_range {
	int64_t outer, outers, row, rows;
} vn_row_range;

typedef struct vn_window {
	int64_t        most; /* capacity, in elements per side */
	unsigned char *room[2];
	vn_row_range   holds;
} vn_window;

/* Creates a window for each thread, at least 65536 elements per side, together at most 64 MB. NULL:
 * no memory. */
vn_window *vn_windows_open(int threads);
void       vn_windows_close(vn_window *w, int threads);

/* Enlarges a window to hold this many elements, such as a row of scores. false: no memory. */
bool vn_window_holds(vn_window *w, int64_t elements);

/* Read part of a job that is read in parts: some rows; or elements [from, from + n) in the tensor's
 * order. */
vn_status vn_window_rows(vn_window *w, const vn_job *j, const vn_pair *p, vn_row_range rows, vn_error *err);
vn_status vn_window_run(vn_window *w, const vn_job *j, int64_t from, int64_t n, vn_error *err);
/* Return p for what the window holds: from row t of outer index o; or from element `from` on. */
vn_pair   vn_window_of_row(const vn_window *w, const vn_pair *p, int64_t o, int64_t t);
vn_pair   vn_window_of_run(const vn_window *w, const vn_pair *p, int64_t from);
