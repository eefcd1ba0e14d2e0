/* by_itself.c: see by_itself.h. */
#include "compare/chapters/by_itself.h"
#include "compare/match/trusted.h"

#include "capture/recording/echo.h"
#include "capture/recording/garbage.h"
#include "capture/show/identities.h"

#include <string.h>

/* ---- each file alone ------------------------------------------------------------- */

enum { SAID_ALONE = 8 };

static bool diverges(void *context, int step, int layer)
{
	const vn_comparison *c = context;
	const vn_checkpoint *first = c->result.first >= 0 ? &c->result.point[c->result.first] : NULL;
	if (!first || (first->step == step && first->layer == layer))
		return true;
	for (int i = 0; i < c->result.n_origins && i < SAID_ALONE; i++)
		if (c->result.point[c->result.origins[i]].step == step && c->result.point[c->result.origins[i]].layer == layer)
			return true;
	return false;
}

static vn_status check_one_side(vn_comparison *c, const char *who, vn_recording *r, vn_error *err)
{
	vn_identities x;
	vn_error      why = { "" };
	vn_status     st = vn_identities_of(r, c->opened.plan, diverges, c, &x, &why);
	if (st && !vn_status_ends_job(st)) /* an unreadable tensor is reported where it is compared */
		vn_lines_add(&c->result.warnings, "%s by itself: some checks could not be made: %s", who, why.text);
	else if (st)
		*err = why;
	for (int i = 0; !st && i < x.n && i < SAID_ALONE; i++)
		vn_lines_add(&c->result.warnings, "%s by itself: %s%.0d%s%s", who, x.broken[i].step ? "step." : "",
		             x.broken[i].step, x.broken[i].step ? "/" : "", x.broken[i].words);
	if (!st && x.n > SAID_ALONE)
		vn_lines_add(&c->result.warnings, "%s by itself: %d more checks fail (vernier show --check)", who,
		             x.n - SAID_ALONE);
	vn_identities_free(&x);
	return vn_status_ends_job(st) ? st : VN_OK;
}

vn_status vn_check_alone(vn_comparison *c, vn_error *err)
{
	if (vn_trusts(c))
		return VN_OK; /* that would read every number */
	const vn_status st = check_one_side(c, "the reference", c->opened.ref, err);
	return st ? st : check_one_side(c, "the candidate", c->opened.cand, err);
}

vn_status vn_find_overwritten(vn_comparison *c, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < c->result.n_points && !st; i++) {
		vn_checkpoint  *p = &c->result.point[i];
		const vn_entry *e = p->m.n ? vn_recording_entry(c->opened.cand, p->cand) : NULL;
		int64_t         differing = 0, first;
		if (e && e->again)
			st = vn_identity_again(c->opened.cand, p->cand, &differing, &first, err);
		p->overwritten = differing > 0 ? e->again : NULL;
	}
	return st;
}

/* ---- logits that echo their input ------------------------------------------------- */

/* Logits that agree echo as often as the reference's. */
static bool logits_fail(const vn_comparison *c)
{
	for (int i = 0; i < c->result.n_points; i++)
		if (c->result.point[i].scores && c->result.point[i].fails)
			return true;
	return false;
}

static double larger_of(double a, double b)
{
	return a > b ? a : b;
}

/* Tied weights that were never trained echo without a mistake, so the reference says how often is too often. */
vn_status vn_check_echo(vn_comparison *c, vn_error *err)
{
	vn_recording *r[2] = { c->opened.ref, c->opened.cand };
	vn_echo       e[2] = { { 0 } };
	vn_error      why = { "" };
	vn_status     st = VN_OK;

	if (!logits_fail(c))
		return VN_OK;
	for (int i = 0; i < 2 && !st; i++)
		st = vn_echo_of(r[i], &e[i], &why);
	if (st) /* what cannot be read was judged before */
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	if (e[0].rows == 0 || e[1].rows == 0)
		return VN_OK;
	const double ref = (double)e[0].peaks / (double)e[0].rows, cand = (double)e[1].peaks / (double)e[1].rows;
	const double repeats = (double)e[1].repeats / (double)e[1].rows;
	if (vn_echoes(cand, larger_of(ref, repeats), e[1].rows))
		vn_lines_add(&c->result.warnings,
		             "the candidate's logits peak at their input token in %.3g %% of %lld rows; the reference's in "
		             "%.3g %%: the tensor that reaches the candidate's output head resembles the embedding",
		             100 * cand, (long long)e[1].rows, 100 * ref);
	return VN_OK;
}

/* ---- garbage ------------------------------------------------------------------------ */

/* Do both have the same tokens, and the same texts of these as far as both have texts? */
static bool same_text(const vn_comparison *c)
{
	const int32_t *a, *b;
	const int64_t  n = vn_recording_tokens(c->opened.ref, &a, NULL);
	char *const   *ta = vn_recording_token_text(c->opened.ref), *const *tb = vn_recording_token_text(c->opened.cand);
	bool           same = n == vn_recording_tokens(c->opened.cand, &b, NULL);

	for (int64_t i = 0; i < n && same; i++)
		same = a[i] == b[i] && (!ta || !tb || strcmp(ta[i], tb[i]) == 0);
	return same;
}

/* With equal texts, logits that agree choose what the reference chooses. */
vn_status vn_check_garbage(vn_comparison *c, vn_error *err)
{
	vn_garbage ref, cand;
	vn_error   why = { "" };
	char       words[VN_GARBAGE_WORDS];

	if (strcmp(vn_recording_provenance(c->opened.ref), "synthetic") == 0 || (!logits_fail(c) && same_text(c)))
		return VN_OK;
	vn_status st = vn_garbage_of(c->opened.ref, &ref, &why);
	if (!st)
		st = vn_garbage_of(c->opened.cand, &cand, &why);
	if (st) /* what cannot be read was judged before */
		return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
	for (vn_garbage_sign i = 0; i < VN_N_GARBAGE_SIGNS; i++)
		if (vn_garbage_shows(&cand, &ref, i, words))
			vn_lines_add(&c->result.warnings, "the candidate's %s", words);
	return VN_OK;
}
