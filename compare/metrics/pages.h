/* pages.h: gives the pages of mapped tensors back to the system, behind the measuring pass.
 *
 * Otherwise a mapped tensor of gigabytes would count as memory to its last page. Units of work are
 * counted in stretches; the thread that ends the last unit of a stretch gives the stretch back, so
 * nobody waits for a slow thread.
 */
#ifndef VN_COMPARE_PAGES_H
#define VN_COMPARE_PAGES_H

#include "compare/metrics/measure.h"

typedef struct vn_stretches {
	int64_t all, units;     /* of all, of a stretch; 0: nothing is given back */
	int64_t count;          /* stretches */
	_Atomic int64_t *ended; /* (count), of the caller: their units that are done */
} vn_stretches;

/* Of a pair of so many units of `unit` elements each: 8 to 32 MB of both sides. None where it is not mapped, or is one stretch:
 * what is done with its units may want their pages again. ended is not set. */
vn_stretches vn_stretches_of(const vn_pair *p, int64_t units, int64_t unit, int threads);
/* Of a unit that is done: whether it was the last of its stretch, whose units [*from, *to) may be given back. */
bool         vn_stretch_ends(vn_stretches *s, int64_t unit, int64_t *from, int64_t *to);

/* Whether a pair is given back when it is measured: mapped, and of so many bytes on both sides. Smaller ones are left to whoever
 * has many of them measured. */
enum { VN_GIVES_BACK = 4 << 20 };
bool vn_pair_gives_back(const vn_pair *p);

/* Elements from..to are not needed soon and shall not count as memory. */
void vn_pair_give_back(const vn_pair *p, int64_t from, int64_t to);

#endif
