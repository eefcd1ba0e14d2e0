/* recording_add.c: adds tensors to a recording; see recording_internal.h. */
#include "capture/recording/recording_internal.h"

#include "libref/base/grow.h"
#include "libref/base/intern.h"

/* Replaces texts by their copies. Returns false without memory. */
static bool intern_texts(vn_entry *e)
{
	const char **text[] = { &e->name, &e->point, &e->op, &e->basis, &e->axes, &e->source_line, &e->again };

	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		if (*text[i] && !(*text[i] = vn_intern(*text[i])))
			return false;
	return true;
}

bool vn_recording_add(vn_recording *r, const vn_entry *e, const vn_entry_source *s)
{
	const size_t n = (size_t)r->n_entries;
	vn_entry     own = *e;

	if (!intern_texts(&own) || !VN_GROW(r->entry, n) || !VN_GROW(r->source, n))
		return false;
	own.same_as = -1;
	r->entry[n] = own;
	r->source[n] = *s;
	r->n_entries++;
	return true;
}

bool vn_recording_keep_stats(vn_recording *r, vn_entry *e, const vn_stats *stats)
{
	if (!VN_GROW(r->stats, r->n_stats))
		return false;
	r->stats[r->n_stats] = *stats;
	e->stats = ++r->n_stats;
	return true;
}
