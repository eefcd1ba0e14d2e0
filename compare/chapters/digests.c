/* digests.c: see digests.h. */
#include "compare/chapters/digests.h"

enum { WRONG_NAMED = 8 };

typedef struct wrong {
	vn_lines *to;
	bool      allowed;
	int       n;
} wrong;

static void say_wrong(void *context, const char *words)
{
	wrong *w = context;
	if (w->n++ >= WRONG_NAMED)
		return;
	if (w->allowed)
		vn_lines_add(w->to, "allowed (digest): %s", words);
	else
		vn_lines_refuse(w->to, "digest", "%s", words);
}

static void tell_wrong(const vn_opened *o, wrong *w)
{
	const vn_recording *r[] = { o->ref, o->cand, o->floor };
	for (int i = 0; i < 3; i++)
		if (r[i])
			vn_recording_wrong(r[i], say_wrong, w);
	if (o->replayed)
		vn_recording_wrong(o->replayed->recording, say_wrong, w);
	if (w->n > WRONG_NAMED)
		vn_lines_add(w->to, "%s%d more tensors do not match their digests", w->allowed ? "allowed (digest): " : "",
		             w->n - WRONG_NAMED);
}

vn_status vn_digests_refuse(const vn_opened *o, vn_lines *refusals, vn_error *err)
{
	wrong w = { .to = refusals };
	tell_wrong(o, &w);
	return w.n ? vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(o->ref),
	                     vn_recording_path(o->cand))
	           : VN_OK;
}

vn_status vn_digests_check(const vn_opened *o, vn_verified *digests, vn_lines *refusals, int n, vn_error *err)
{
	vn_recording *r[] = { o->ref, o->cand, o->floor };
	vn_status     st = VN_OK;
	*digests = (vn_verified) { 0 };
	for (int i = 0; i < n && !st; i++)
		if (r[i] && !(st = vn_recording_verify(r[i], err)))
			vn_recording_verified(r[i], digests);
	return st || !digests->wrong || (o->request.options->allow & VN_ALLOW_DIGEST) ? st
	                                                                              : vn_digests_refuse(o, refusals, err);
}

void vn_digests_warn(const vn_opened *o, vn_lines *warnings)
{
	wrong w = { .to = warnings, .allowed = true };
	tell_wrong(o, &w);
}
