/* entry.h: a tensor of a recording: what is said of it, a part of it, and what it is gathered from
 * (derive.h).
 *
 * Owner   an entry belongs to its recording; its texts are interned.
 */
#pragma once

#include "libref/base/digest.h"
#include "libref/base/tensor.h"
#include "libref/plan/point.h"
#include "libref/plan/tap.h"

#include <stdbool.h>

enum { VN_WORD_MAX = 32, VN_AXES_MAX = 64, VN_SOURCE_LINE_MAX = 128 };

/* One tensor under one name. Equal texts share one copy (libref/base/intern.h). */
typedef struct vn_entry {
	const char     *name; /* "layer3.q_rope"; shorter than VN_NAME_MAX */
	/* "" if the file does not say; shorter than VN_WORD_MAX (axes: VN_AXES_MAX) */
	const char     *point, *op, *basis, *axes;
	/* "model.py:123", where the program recorded it; "" if the file does not say; shorter than
	 * VN_SOURCE_LINE_MAX */
	const char     *source_line;
	int             step;    /* number of its step */
	int             order;   /* place in the execution order; -1: not stated */
	int             layer;   /* -1 outside layers */
	int             same_as; /* the entry that this is a second name of (hard link), or -1 */
	vn_shape        shape;
	vn_dtype        dtype;
	int             stats;  /* for vn_recording_stats; 0: the file states none */
	vn_digest_bytes digest; /* for vn_entry_digest */
	bool            has_digest;
	/* seen in another layout than it is stored in (view.h): the digest is not that of its
	 * numbers */
	bool            viewed;
	/* the checkpoint that it is a second recording of (name_map.h), and whose numbers it must hold;
	 * NULL */
	const char     *again;
	/* joined from shards of the vocabulary, one on every rank, none of them whole (ranks.h) */
	bool            not_gathered;
	bool            rows_off; /* its number of token rows differs from what its step states */
} vn_entry;

/* Returns the point of an entry, from its attribute or its name; NULL if it is not one of
 * vernier's. */
const vn_point_info *vn_entry_point(const vn_entry *e);
/* Returns the digest that the file states; empty if it states none. */
vn_digest            vn_entry_digest(const vn_entry *e);
/* Returns the dims string of an entry: the file's own, or its point's, or "". */
const char          *vn_entry_axes(const vn_entry *e);
/* Is it computed after the last layer? Engines that only need the next token compute logits, and
 * what they come from, for the last row only. */
bool                 vn_entry_last(const vn_entry *e);
/* Is it such a checkpoint, recorded with one row although its step keeps `rows` rows? */
bool                 vn_entry_last_alone(const vn_entry *e, int64_t rows);

/* A part of a tensor: size[k] indices from from[k] on along axis k. */
typedef struct vn_region {
	int64_t from[VN_MAX_RANK], size[VN_MAX_RANK];
} vn_region;

int64_t vn_region_count(const vn_region *box, int rank);

/* A box of the result, and its numbers in a source tensor: element (i, j...) of the box, which
 * begins at `to` in the result, is element from + i stride[0] + j stride[1]... of the source. */
typedef struct vn_piece {
	int     base, entry; /* index of the source, and of its tensor */
	int64_t to[VN_MAX_RANK], size[VN_MAX_RANK];
	int64_t from, stride[VN_MAX_RANK];
} vn_piece;

/* How overlapping pieces are combined. */
typedef enum vn_joined { VN_JOIN_PLACED /* they do not overlap */, VN_JOIN_SUMMED } vn_joined;
