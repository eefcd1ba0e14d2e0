/* unmatched.c: explains names that only one side has: another engine's names, or misspelt ones; see
 * match.h. */
#include "compare/match/match.h"

#include "capture/names/name_map.h"
#include "libref/base/alloc.h"
#include "libref/base/nearest.h"

#include <stdlib.h>

enum {
	FEWEST_NAMES = 3,  /* fewer names do not identify an engine */
	MOST_MISSPELT = 8, /* names that are looked at */
	MOST_TRIED = 5000, /* the most names that each is compared with */
};

/* The names that only one side has in the first step. For the candidate (VN_EXTRA), only names that
 * are no checkpoint's. */
typedef struct alone {
	const char **name; /* borrowed names; the list is owned */
	int          n;
} alone;

static bool is_checkpoint(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_recording *r = p->ref >= 0 ? o->ref : o->cand;
	return vn_entry_point(vn_recording_entry(r, p->ref >= 0 ? p->ref : p->cand)) != NULL;
}

static alone list_alone(const vn_opened *o, const vn_checkpoints *all, vn_checkpoint_status status, bool known)
{
	alone a = { .name = vn_alloc((size_t)all->n, sizeof *a.name) };

	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &all->of[i];
		if (p->status == status && p->fails && p->step == 0 && is_checkpoint(o, p) == known)
			a.name[a.n++] = p->name;
	}
	return a;
}

/* Does a shipped name map know the names of one side? who and option: words for the note. */
static vn_status find_map(vn_lines *notes, const alone *a, const char *who, const char *option, const char **map,
                          vn_error *err)
{
	int             fits = 0;
	const vn_status st = a->n < FEWEST_NAMES ? VN_OK : vn_name_map_fit(a->name, a->n, map, &fits, err);

	if (!st && *map)
		vn_lines_add(notes, "names: %d of %d names that only the %s has are known to the name map %s: add %s %s", fits,
		             a->n, who, *map, option, *map);
	return st;
}

/* Notes a name that is no checkpoint's and resembles a checkpoint that the candidate lacks. */
static void find_misspelt(vn_unpaired *unpaired, vn_lines *notes, const alone *extra, const alone *missing)
{
	for (int i = 0; i < extra->n && i < MOST_MISSPELT; i++) {
		vn_nearest near;
		vn_nearest_start(&near, extra->name[i]);
		for (int k = 0; k < missing->n && k < MOST_TRIED; k++)
			vn_nearest_try(&near, missing->name[k]);
		if (!vn_nearest_found(&near))
			continue;
		unpaired->misspelt = true;
		vn_lines_add(notes, "names: %s is not a checkpoint name; did you mean %s, which the candidate lacks?",
		             extra->name[i], vn_nearest_found(&near));
	}
}

vn_status vn_match_names(const vn_opened *o, const vn_checkpoints *all, vn_unpaired *unpaired, vn_lines *notes,
                         vn_error *err)
{
	alone theirs = list_alone(o, all, VN_EXTRA, false), ours = list_alone(o, all, VN_MISSING, false),
		  missing = list_alone(o, all, VN_MISSING, true);
	vn_status st;

	if (!(st = find_map(notes, &theirs, "candidate", "--names", &unpaired->cand_map, err)) &&
	    !(st = find_map(notes, &ours, "reference", "--ref-names", &unpaired->ref_map, err)) && !unpaired->cand_map)
		find_misspelt(unpaired, notes, &theirs, &missing);
	VN_FREE(theirs.name, ours.name, missing.name);
	return st;
}
