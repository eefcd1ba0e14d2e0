/* sides.h: opens the two sides of a comparison and converts them to vernier's layout.
 *
 * Another engine's recording may use its own names, hold several prompts, keep its cache in pages,
 * or be one of several ranks. These are resolved in this order: names, batch row, pages, ranks.
 * Later code sees an ordinary recording.
 *
 * Reads   request.options
 * Fills   opened.ref, opened.cand, opened.floor, opened.replayed; lines of remarks.notes and
 *         remarks.warnings
 */
#pragma once

#include "compare/comparison/comparison.h"

enum { VN_MOST_MAPS = 8, VN_MOST_RANKS = 256 };

typedef struct vn_sides {
	const char        *ref;
	const char *const *cand; /* (n_cand) more than one: the ranks of one run */
	int                n_cand;
	const char        *floor, *replayed;                              /* NULL: none */
	const char        *names[VN_MOST_MAPS], *ref_names[VN_MOST_MAPS]; /* name maps, in order */
	int                n_names, n_ref_names;
	int64_t            batch_row, ref_batch_row; /* which row of a batched recording; -1: not given */
	/* ref and the only candidate, if they are open already: the comparison takes ownership; NULL:
	 * they are opened here */
	vn_recording      *opened[2];
} vn_sides;

/* Opens the sides. Call vn_comparison_close afterwards, also after a failure. */
vn_status vn_sides_open(const vn_sides *s, vn_opened *o, vn_remarks *remarks, vn_error *err);
