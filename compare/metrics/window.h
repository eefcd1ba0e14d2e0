/* window.h: parts of a pair of tensors that is too large to be in memory, read where they are measured.
 *
 * A tensor that lies in its file as it is measured is mapped. One whose tokens lie in many places
 * (heads before tokens: the kernel maps up to 2 MB around each), one seen otherwise and one gathered
 * from several is read into memory of the thread that measures it, some rows at a time.
 *
 * Threads  a window each.
 */
#ifndef VN_COMPARE_WINDOW_H
#define VN_COMPARE_WINDOW_H

#include "compare/metrics/measure.h"

typedef struct vn_window {
	int64_t        most;    /* elements of a side that it holds */
	unsigned char *room[2];
	int64_t        outer, row, rows; /* what it shows: rows [row, row + rows) of outer indices from `outer` on */
} vn_window;

/* Windows for so many threads, each of 65536 elements a side at least: no more than 64 MB together. NULL: no memory. */
vn_window *vn_windows_open(int threads);
void       vn_windows_close(vn_window *w, int threads);

/* Larger where it must hold more than that: a row of scores. false: no memory. */
bool       vn_window_holds(vn_window *w, int64_t elements);

/* Of a job that is read in parts: rows of so many outer indices; or elements [from, from + n) as the tensor has them. */
vn_status  vn_window_rows(vn_window *w, const vn_job *j, const vn_pair *p, int64_t outer, int64_t n_outer, int64_t row, int64_t rows, vn_error *err);
vn_status  vn_window_run(vn_window *w, const vn_job *j, int64_t from, int64_t n, vn_error *err);
/* p as the window shows it: of a run of row t of outer index o; or from element `from` on. */
vn_pair    vn_window_of_row(const vn_window *w, const vn_pair *p, int64_t o, int64_t t);
vn_pair    vn_window_of_run(const vn_window *w, const vn_pair *p, int64_t from);

#endif
