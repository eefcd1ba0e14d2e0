/* pages.h: releases the pages of mapped tensors after the measuring pass has read them.
 *
 * Otherwise a mapped tensor of gigabytes would count as memory down to its last page. Units of work
 * are counted in stretches; the thread that ends the last unit of a stretch releases it, so no
 * thread waits for a slow one.
 */
#pragma once

#include "compare/metrics/pair.h"

typedef struct vn_stretches {
	int64_t          all, units; /* total units; units per stretch, 0: nothing is released */
	int64_t          count;      /* number of stretches */
	_Atomic int64_t *ended;      /* (count), the caller's: finished units of each */
} vn_stretches;

/* Divides a pair of `units` units of `unit` elements each into stretches of 8 to 32 MB over both
 * sides. None if the pair is not mapped, or would be a single stretch, whose pages may be needed
 * again. Does not set `ended`. */
vn_stretches vn_stretches_of(const vn_pair *p, int64_t units, int64_t unit, int threads);
/* Call when a unit is finished. Returns true if it was the last of its stretch, whose units [*from,
 * *to) can then be released. */
bool         vn_stretch_ends(vn_stretches *s, int64_t unit, int64_t *from, int64_t *to);
/* Is `unit` the last of its stretch by number, and were all units of the stretch finished (and its
 * pages released)? Code that reads the units in order has then mapped these pages again, and
 * releases them again. */
bool         vn_stretch_over(const vn_stretches *s, int64_t unit, int64_t *from, int64_t *to);

/* Is a pair released after measuring? If it is mapped, and has at least this many bytes on both
 * sides. Smaller pairs are left to the caller who measures many of them. */
enum { VN_GIVES_BACK = 4 << 20 };
bool vn_pair_gives_back(const vn_pair *p);

/* Releases elements from..to, which are not needed soon. */
void vn_pair_give_back(const vn_pair *p, int64_t from, int64_t to);
