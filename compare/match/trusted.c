/* trusted.c: see trusted.h. */
#include "compare/match/trusted.h"

#include "compare/comparison/checkpoint.h"

#include <inttypes.h>
#include <string.h>

bool vn_trusts(const vn_opened *o)
{
	return o->request.options->trust && !o->request.options->model;
}

/* Finite numbers, not all of them the same. */
static bool is_plain(const vn_recording *r, const vn_entry *e)
{
	const vn_stats *s = vn_recording_stats(r, e);
	return s && s->nan + s->inf == 0 && s->min < s->max;
}

static bool have_equal_digests(const vn_recording *ref, const vn_entry *r, const vn_recording *cand, const vn_entry *d)
{
	return r->has_digest && d->has_digest && !r->viewed && !d->viewed && r->dtype == d->dtype &&
	       memcmp(&r->digest, &d->digest, sizeof r->digest) == 0 && is_plain(ref, r) && is_plain(cand, d);
}

void vn_trust_digests(const vn_opened *o, vn_checkpoints *all, vn_remarks *remarks)
{
	vn_lines *to = o->request.options->strict ? &remarks->warnings : &remarks->notes;
	int64_t   bytes = 0;
	int       n = 0;

	if (!vn_trusts(o))
		return;
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint  *p = &all->of[i];
		const vn_entry *r = p->ref >= 0 ? vn_recording_entry(o->ref, p->ref) : NULL;
		const vn_entry *d = p->cand >= 0 ? vn_recording_entry(o->cand, p->cand) : NULL;
		if (p->fails || !r || !d || !have_equal_digests(o->ref, r, o->cand, d) || !vn_recording_trust(o->ref, p->ref) ||
		    !vn_recording_trust(o->cand, p->cand))
			continue;
		p->status = VN_EQUAL;
		vn_checkpoint_say(p, "equal by its digest, and not read");
		bytes += vn_shape_count(&r->shape) * (int64_t)vn_dtype_size(r->dtype);
		n++;
	}
	vn_recording_drop_stats(o->ref);
	vn_recording_drop_stats(o->cand);
	if (n)
		vn_lines_add(to,
		             "%d checkpoint%s of %" PRId64 " bytes %s equal by %s digest%s and not read (--trust-digests): "
		             "whether the files hold these numbers was not checked",
		             n, n == 1 ? "" : "s", bytes, n == 1 ? "is" : "are", n == 1 ? "its" : "their", n == 1 ? "" : "s");
}
