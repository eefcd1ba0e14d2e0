/* details.c: the details of what failed, from the numbers of the recordings; see document.h. */
#include "compare/result/document_json.h"

#include "compare/judge/localise.h"
#include "compare/metrics/team.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bounds the elements of all checkpoints with details, except the first divergence and the origins.
 * Details read these tensors again, which takes at most half a second. */
enum { MORE_ELEMENTS = 1 << 26, SAID_BYTES = 32 };

/* Text of a kept row's token as recorded, " 'Paris'", or empty. */
static const char *token_text(const vn_recording *r, const vn_entry *e, int64_t row, char *text, size_t room)
{
	char *const   *all = vn_recording_token_text(r);
	const vn_step *step = vn_recording_step(r, e->step);
	const int32_t *ids;
	const int64_t  kept = step && vn_entry_last_alone(e, step->rows) ? step->rows - 1 : row;
	const int64_t  at = step ? step->position + step->first_row + kept : row;
	*text = 0;
	if (!all || at < 0 || at >= vn_recording_tokens(r, &ids, NULL))
		return text;
	size_t     n = strlen(all[at]);
	const bool cut = n > SAID_BYTES;
	for (n = cut ? SAID_BYTES : n; cut && n > 0 && (all[at][n] & 0xc0) == 0x80; n--)
		; /* do not cut inside a character */
	snprintf(text, room, " '%.*s%s'", (int)n, all[at], cut ? "..." : "");
	return vn_text_clean(text, room);
}

/* The number of the token of row 0 in its call. */
static int64_t first_token(const vn_recording *r, const vn_entry *e)
{
	const vn_step *s = vn_recording_step(r, e->step);
	return s ? s->first_row : 0;
}

/* "token 3 'Paris', head 0, dim 17", or "[3, 0, 17]" when the axes have no names. */
static void say_where(const vn_recording *r, const vn_entry *e, const int64_t *at, char *text, size_t room)
{
	const char *axes = vn_entry_axes(e);
	size_t      used = 0;
	text[0] = 0;
	for (int i = 0; i < e->shape.rank && used < room; i++) {
		size_t      n;
		const char *axis = vn_axes_word(axes, i, &n);
		char        token[SAID_BYTES + 16];
		const bool  row = n == 5 && strncmp(axis, "token", n) == 0;
		const int   k = snprintf(text + used, room - used, "%s%.*s%s%" PRId64 "%s", i ? ", " : "", (int)n, axis,
                               n ? " " : "", at[i] + (row ? first_token(r, e) : 0),
                               row ? token_text(r, e, at[i], token, sizeof token) : "");
		used += k > 0 ? (size_t)k : 0;
	}
}

/* from: the element at which `around` begins. */
static vn_status read_side(vn_numbers *s, int which, int64_t from, vn_detail *d, vn_error *err)
{
	vn_status st = vn_numbers_stats(s, &d->stats[which], err);
	if (!st && !(st = vn_numbers_read(s, from, (size_t)d->n_around, err)))
		memcpy(d->around[which], s->x, (size_t)d->n_around * sizeof *s->x);
	return st;
}

/* The passes over a pair of tensors, each with handles of its own: the sums of either side,
 * and the profile of both. */
typedef struct passes {
	vn_numbers *handle[4];
	int         threads;
	int64_t     from;
	vn_detail  *d;
	vn_status   st[3];
	vn_error    why[3];
} passes;

static void read_pass(void *ctx, int i)
{
	passes *p = ctx;
	p->st[i] = i < 2 ? read_side(p->handle[i], i, p->from, p->d, &p->why[i])
	                 : vn_profile_read(p->handle[2], p->handle[3], p->threads, &p->d->profile, &p->why[i]);
}

static vn_status read_numbers(const vn_opened *o, const vn_checkpoint *p, int64_t from, vn_detail *d, vn_error *err)
{
	const bool many = vn_recording_share(o->ref) && vn_recording_share(o->cand);
	passes     x = { .threads = many ? o->request.options->threads : 1, .from = from, .d = d };
	vn_status  st = VN_OK;
	for (int i = 0; i < 4; i++) {
		vn_error *why = &x.why[i < 2 ? i : 2];
		x.handle[i] = vn_alloc_check(i % 2 ? vn_numbers_open(o->cand, p->cand, why)
		                                   : vn_numbers_open(o->ref, p->ref, why));
	}
	vn_team_each(x.threads, 3, read_pass, &x);
	for (int i = 0; i < 3 && !st; i++)
		if ((st = x.st[i]) && err)
			*err = x.why[i];
	for (int i = 0; i < 4; i++)
		vn_numbers_close(x.handle[i]);
	return st;
}

/* Finds the worst element and the neighbours to show. Returns the first neighbour's index in
 * the flat tensor. */
static int64_t place_worst(const vn_checkpoint *p, const vn_shape *shape, vn_detail *d)
{
	const int64_t worst = p->m.bad_at >= 0 ? p->m.bad_at : p->m.at, all = vn_shape_count(shape);
	const int64_t length = shape->rank ? shape->dim[shape->rank - 1] : all,
				  shown = length < VN_AROUND_VALUES ? length : VN_AROUND_VALUES;
	int64_t rest = worst;

	for (int i = shape->rank - 1; rest >= 0 && i >= 0; i--) {
		d->at[i] = rest % shape->dim[i];
		rest /= shape->dim[i];
	}
	const int64_t at = worst >= 0 ? worst % length : 0, first = at - shown / 2;
	d->n_around = (int)shown;
	d->around_at = first < 0 ? 0 : first > length - shown ? length - shown : first;
	return (worst >= 0 ? worst - at : 0) + d->around_at;
}

/* Describes the shown neighbours by the worst element's indices, except along the last axis. */
static void say_around(const vn_recording *r, const vn_entry *e, vn_detail *d)
{
	int64_t first[VN_MAX_RANK];

	memcpy(first, d->at, sizeof first);
	if (e->shape.rank)
		first[e->shape.rank - 1] = d->around_at;
	say_where(r, e, first, d->around_where, sizeof d->around_where);
	if (d->n_around > 1)
		vn_text_add(d->around_where, sizeof d->around_where, "-%" PRId64, d->around_at + d->n_around - 1);
}

static vn_status fill_detail(const vn_opened *o, const vn_result *r, vn_detail *d, int *room, vn_error *err)
{
	const vn_checkpoint *p = &r->checkpoints.of[d->checkpoint];
	const vn_entry      *e = vn_recording_entry(o->ref, p->ref);
	const int64_t        from = place_worst(p, &e->shape, d);
	vn_status            st;

	d->n_input = vn_inputs_of(o, &r->checkpoints, &r->localised, d->checkpoint, room, r->checkpoints.n);
	d->input = room;
	if ((st = read_numbers(o, p, from, d, err)) || (st = vn_layout_match_find(o, p, &d->like, err)))
		return st;
	if (*d->like.words)
		vn_lines_first(&d->profile.words, d->like.words);
	say_where(o->ref, e, d->at, d->where, sizeof d->where);
	say_around(o->ref, e, d);
	vn_recording_forget(o->ref); /* the pages examined would accumulate */
	vn_recording_forget(o->cand);
	return VN_OK;
}

static vn_status add_detail(vn_document *doc, const vn_opened *o, const vn_result *r, int point, int *room,
                            vn_error *err)
{
	vn_detail       d = { .checkpoint = point, .op = vn_document_about(doc, &r->checkpoints.of[point]).op };
	const vn_status st = fill_detail(o, r, &d, room, err);

	if (!st) {
		doc->detail[vn_document_lines(doc->divergences)] = point;
		json_array_append_new(doc->divergences, vn_json_detail(o, r, &d));
	}
	vn_profile_free(&d.profile);
	return st;
}

vn_status vn_document_details(vn_document *doc, const vn_opened *o, const vn_result *r, int most, vn_error *err)
{
	int64_t more = 0;
	int     left_out = 0;

	doc->divergences = json_array();
	doc->divergences_left_out = json_integer(0);
	if (r->localised.first < 0 || most < 1)
		return VN_OK;
	VN_FREED int *room = vn_alloc((size_t)r->checkpoints.n, sizeof *room);
	doc->detail = vn_alloc_zero((size_t)most, sizeof *doc->detail);
	vn_status st = add_detail(doc, o, r, r->localised.first, room, err);
	for (int i = 0; !st && i < r->localised.n_origins && vn_document_lines(doc->divergences) < most; i++)
		if (r->localised.origins[i] != r->localised.first)
			st = add_detail(doc, o, r, r->localised.origins[i], room, err);
	for (int i = 0; !st && i < r->checkpoints.n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[i];
		if (p->status != VN_OUTSIDE || !p->fails || vn_document_detail(doc, i))
			continue;
		if (!p->origin)
			more += p->m.n;
		if (vn_document_lines(doc->divergences) < most && more <= MORE_ELEMENTS)
			st = add_detail(doc, o, r, i, room, err);
		else
			left_out++;
	}
	json_integer_set(doc->divergences_left_out, left_out);
	return st;
}
