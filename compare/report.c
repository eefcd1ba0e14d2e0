/* report.c: what both reports need; see report.h. */
#include "compare/report.h"

#include <inttypes.h>
#include <string.h>

const char *vn_label(const vn_checkpoint *p, char *text)
{
	if (p->step == 0)
		snprintf(text, VN_LABEL, "%s", p->name);
	else
		snprintf(text, VN_LABEL, "step.%d/%s", p->step, p->name);
	return text;
}

const vn_entry *vn_entry_of(const vn_comparison *c, const vn_checkpoint *p)
{
	return p->ref >= 0 ? vn_recording_entry(c->ref, p->ref) : vn_recording_entry(c->cand, p->cand);
}

const char *vn_op_of(const vn_comparison *c, const vn_checkpoint *p)
{
	const vn_entry *e = vn_entry_of(c, p);
	return *e->op || p->value < 0 ? e->op : vn_op_name(c->plan->node[c->plan->value[p->value].node].op);
}

const char *vn_point_of(const vn_checkpoint *p)
{
	const char *dot = strchr(p->name, '.');
	return dot ? dot + 1 : p->name;
}

/* "token 3, head 0, dim 17", or "[3, 0, 17]" when the axes have no names. */
static void say_where(const vn_shape *s, const char *axes, const int64_t *at, char *text, size_t room)
{
	size_t used = 0;
	text[0] = 0;
	for (int i = 0; i < s->rank && used < room; i++) {
		const size_t n = strcspn(axes, " ");
		const int k = snprintf(text + used, room - used, "%s%.*s%s%" PRId64, i ? ", " : "", (int)n, axes,
		                       n ? " " : "", at[i]);
		used += k > 0 ? (size_t)k : 0;
		axes += n + strspn(axes + n, " ");
	}
}

static void side(const vn_tensor *t, int which, vn_detail *d)
{
	const int64_t n = vn_shape_count(&t->shape);
	d->n_first = n < VN_DETAIL_FIRST ? (int)n : VN_DETAIL_FIRST;
	vn_to_f64(d->first[which], t->data, t->dtype, (size_t)d->n_first);
	d->stats[which] = vn_stats_of(t->data, t->dtype, (size_t)n);
}

vn_status vn_detail_of(vn_comparison *c, const vn_checkpoint *p, vn_detail *d, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(c->ref, p->ref);
	vn_tensor ref, cand;
	vn_status st;
	memset(d, 0, sizeof *d);
	if (!(st = vn_entry_tensor(c->ref, p->ref, &ref, err)) && !(st = vn_entry_tensor(c->cand, p->cand, &cand, err))) {
		side(&ref, 0, d);
		side(&cand, 1, d);
		st = vn_profile_of(&ref, &cand, vn_entry_axes(e), &d->profile, err);
	}
	vn_recording_release(c->cand, p->cand);
	vn_recording_release(c->ref, p->ref);
	if (st)
		return st;
	int64_t rest = p->m.bad_at >= 0 ? p->m.bad_at : p->m.at;
	for (int i = e->shape.rank - 1; rest >= 0 && i >= 0; i--) {
		d->at[i] = rest % e->shape.dim[i];
		rest /= e->shape.dim[i];
	}
	say_where(&e->shape, vn_entry_axes(e), d->at, d->where, sizeof d->where);
	return VN_OK;
}

void vn_detail_free(vn_detail *d)
{
	vn_profile_free(&d->profile);
}
