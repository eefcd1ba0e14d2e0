/* sides.h: opens the two sides of a comparison and converts them to the layout of vernier.
 *
 * Another engine's recording may have its own names, be one of several ranks, hold
 * several prompts, or keep its cache in pages. These are resolved in this order: names, the row
 * of a batch, pages, ranks. Later code sees an ordinary recording.
 *
 * Reads   request.options
 * Fills   opened.ref, opened.cand, opened.floor; lines of result.notes and result.warnings
 */
#ifndef VN_COMPARE_SIDES_H
#define VN_COMPARE_SIDES_H

#include "compare/comparison/comparison.h"

enum { VN_MOST_MAPS = 8, VN_MOST_RANKS = 256 };

typedef struct vn_sides {
	const char *ref;
	const char *const *cand;        /* (n_cand) several: the ranks of one run */
	int         n_cand;
	const char *floor;              /* NULL: none */
	const char *names[VN_MOST_MAPS], *ref_names[VN_MOST_MAPS]; /* name maps, in order */
	int         n_names, n_ref_names;
	int64_t     batch_row, ref_batch_row; /* of a batched candidate, of a batched reference; -1: not said */
} vn_sides;

/* Opens the sides. After a failure, too, vn_comparison_close closes those that were opened. */
vn_status vn_sides_open(const vn_sides *s, vn_comparison *c, vn_error *err);

#endif
