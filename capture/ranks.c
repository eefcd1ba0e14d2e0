/* ranks.c: see ranks.h. */
#include "capture/ranks.h"

#include "capture/derive.h"
#include "capture/dims.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 256, MOST_SAID = 8 };

typedef struct job {
	vn_recording *const *rank; /* in order */
	vn_recording *made;
	int           n, said;
	vn_ranks_use *use;
	vn_error     *err;
} job;

__attribute__((format(printf, 2, 3)))
static void say(job *j, const char *format, ...)
{
	char text[500];
	va_list args;
	if (!j->use->say || j->said++ >= MOST_SAID)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	j->use->say(j->use->context, vn_text_clean(text));
}

/* ---- which is which ---------------------------------------------------------------------- */

static bool fact(const vn_recording *r, const char *key, int64_t *x)
{
	const char *text = vn_facts_get(vn_recording_run(r), key);
	return text && vn_text_whole(text, 0, MOST_RANKS, x);
}

static vn_status in_order(vn_recording **rank, int n, vn_error *err)
{
	vn_recording *place[MOST_RANKS] = { NULL };
	int     say = 0;
	int64_t at, size;
	for (int i = 0; i < n; i++)
		say += fact(rank[i], "rank", &at);
	if (say == 0)
		return VN_OK; /* as they were given */
	for (int i = 0; i < n; i++) {
		const char *path = vn_recording_path(rank[i]);
		if (!fact(rank[i], "rank", &at))
			return vn_fail(err, VN_ERR_MISMATCH, "%s: /run does not say which rank it is, others do", path);
		if (fact(rank[i], "world_size", &size) && size != n)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is rank %" PRId64 " of %" PRId64 ", %d are given", path, at, size, n);
		if (at >= n)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is rank %" PRId64 ", and %d are given", path, at, n);
		if (place[at])
			return vn_fail(err, VN_ERR_MISMATCH, "%s: is rank %" PRId64 ", and so is %s", path, at, vn_recording_path(place[at]));
		place[at] = rank[i];
	}
	memcpy(rank, place, (size_t)n * sizeof *rank);
	return VN_OK;
}

/* One run: the same tokens in the same steps. */
static vn_status same_run(vn_recording *const *rank, int n, vn_error *err)
{
	const int32_t *ids, *ids0, *at, *at0;
	const vn_step *step, *step0;
	const int64_t  count0 = vn_recording_tokens(rank[0], &ids0, &at0);
	const int      steps0 = vn_recording_steps(rank[0], &step0);
	for (int i = 1; i < n; i++) {
		const int64_t count = vn_recording_tokens(rank[i], &ids, &at);
		bool same = count == count0 && vn_recording_steps(rank[i], &step) == steps0
		         && (!count || (memcmp(ids, ids0, (size_t)count * sizeof *ids) == 0 && memcmp(at, at0, (size_t)count * sizeof *at) == 0));
		for (int k = 0; same && k < steps0; k++)
			same = step[k].number == step0[k].number && step[k].position == step0[k].position && step[k].tokens == step0[k].tokens
			    && step[k].first_row == step0[k].first_row && step[k].rows == step0[k].rows;
		if (!same)
			return vn_fail(err, VN_ERR_MISMATCH, "%s: other tokens or steps than %s: not ranks of one run", vn_recording_path(rank[i]),
			               vn_recording_path(rank[0]));
	}
	return VN_OK;
}

/* The entries of one checkpoint in all ranks. */
static vn_status entries_of(const job *j, int i, int *entry)
{
	const vn_entry *e = vn_recording_entry(j->rank[0], i);
	for (int k = 0; k < j->n; k++)
		if ((entry[k] = k ? vn_recording_find(j->rank[k], e->step, e->name) : i) < 0)
			return vn_fail(j->err, VN_ERR_MISMATCH, "%s: has no %s in step %d, %s has", vn_recording_path(j->rank[k]), e->name, e->step,
			               vn_recording_path(j->rank[0]));
	for (int k = 1; k < j->n; k++) {
		const vn_entry *d = vn_recording_entry(j->rank[k], entry[k]);
		if (d->shape.rank != e->shape.rank || d->dtype != e->dtype)
			return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s is %s of rank %d, %s of rank %d in %s", vn_recording_path(j->rank[k]), e->name,
			               vn_dtype_name(d->dtype), d->shape.rank, vn_dtype_name(e->dtype), e->shape.rank, vn_recording_path(j->rank[0]));
	}
	return VN_OK;
}

/* ---- the same on all ranks ------------------------------------------------------------------ */

/* The first of the ranks whose numbers are not rank `from`'s: -1: none. */
static vn_status first_other(job *j, const int *entry, int from, int to, int *other, double *most)
{
	const vn_entry *e = vn_recording_entry(j->rank[from], entry[from]);
	const int64_t   n = vn_shape_count(&e->shape);
	const size_t    size = vn_dtype_size(e->dtype);
	const void     *a, *b;
	vn_status st = vn_recording_data(j->rank[from], entry[from], &a, j->err);
	*other = -1;
	*most = 0;
	for (int k = from + 1; !st && k < to && *other < 0; k++) {
		if ((st = vn_recording_data(j->rank[k], entry[k], &b, j->err)))
			break;
		if (n && memcmp(a, b, (size_t)n * size) != 0)
			*other = k;
		for (int64_t i = 0; *other == k && i < n; i++) {
			double x, y;
			vn_to_f64(&x, (const unsigned char *)a + (size_t)i * size, e->dtype, 1);
			vn_to_f64(&y, (const unsigned char *)b + (size_t)i * size, e->dtype, 1);
			*most = fabs(x - y) > *most ? fabs(x - y) : *most;
		}
		vn_recording_release(j->rank[k], entry[k]);
	}
	vn_recording_release(j->rank[from], entry[from]);
	return st;
}

static vn_status check_replicas(job *j, const int *entry, int from, int to)
{
	const vn_entry *e = vn_recording_entry(j->rank[from], entry[from]);
	int    other;
	double most;
	const vn_status st = first_other(j, entry, from, to, &other, &most);
	if (st || other < 0)
		return st;
	if (!j->use->allow_replicas)
		return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s should be what rank %d has, and differs from %s by up to %.3g (--allow replicas compares rank "
		               "%d's)", vn_recording_path(j->rank[other]), e->name, from, vn_recording_path(j->rank[from]), most, from);
	say(j, "%s: ranks %d and %d should have the same and differ by up to %.3g: rank %d's is compared", e->name, from, other, most, from);
	return VN_OK;
}

/* A row-parallel product before its all-reduce, or a table of which each rank has some rows. */
static bool may_be_partial(const vn_entry *e)
{
	static const char *const list[] = { "attn_out", "down_proj", "embed", "token_embed" };
	const vn_point_info *p = vn_entry_point(e);
	for (size_t i = 0; p && i < sizeof list / sizeof *list; i++)
		if (strcmp(p->name, list[i]) == 0)
			return true;
	return false;
}

static void boxes_of_sum(const job *j, const vn_entry *e, const int *entry, vn_piece *piece)
{
	for (int k = 0; k < j->n; k++) {
		int64_t step = 1;
		piece[k] = (vn_piece) { .base = k, .entry = entry[k] };
		for (int a = e->shape.rank - 1; a >= 0; a--) {
			piece[k].size[a] = e->shape.dim[a];
			piece[k].stride[a] = step;
			step *= e->shape.dim[a];
		}
	}
}

static vn_status replicated(job *j, int i, const int *entry)
{
	const vn_entry *e = vn_recording_entry(j->rank[0], i);
	vn_piece piece[MOST_RANKS];
	int      other;
	double   most;
	vn_status st;
	if (may_be_partial(e)) {
		if ((st = first_other(j, entry, 0, j->n, &other, &most)))
			return st;
		if (other >= 0) {
			say(j, "%s: ranks 0 and %d differ: taken as partial sums, and added", e->name, other);
			j->use->summed++;
			boxes_of_sum(j, e, entry, piece);
			return vn_derive_add(j->made, e, piece, j->n, VN_JOIN_SUMMED, j->err);
		}
	} else if ((st = check_replicas(j, entry, 0, j->n))) {
		return st;
	}
	j->use->same++;
	return vn_derive_keep(j->made, e, 0, i, j->err);
}

/* ---- put together along an axis ------------------------------------------------------------ */

/* How the cut axis of one rank is made up: of one part, or of several, each of which goes with its like. */
typedef struct parts {
	int     n;
	int64_t size[3]; /* on one rank */
} parts;

static vn_status parts_of(const job *j, const vn_entry *e, const char *axis, int64_t length, parts *p)
{
	static const char *const fused[2][3] = { { "q_proj", "k_proj", "v_proj" }, { "gdn_q", "gdn_k", "gdn_v" } };
	const int which = strcmp(axis, "qkv") == 0 ? 0 : strcmp(axis, "lin_mix") == 0 ? 1 : -1;
	char    name[VN_NAME_MAX];
	int64_t total = 0;

	*p = (parts) { 1, { length } };
	if (which < 0)
		return VN_OK;
	p->n = 3;
	for (int k = 0; k < 3; k++) {
		snprintf(name, sizeof name, "layer%d.%s", e->layer, fused[which][k]);
		vn_looks looks = vn_like_of(j->use->like, name, vn_recording_step(j->rank[0], e->step));
		p->size[k] = looks.shape.rank < 2 ? -1 : 1;
		for (int a = 1; a < looks.shape.rank; a++) {
			char word[24] = "";
			const char *at = looks.axes;
			for (int skip = 0; skip < a; skip++)
				at += strcspn(at, " ") + 1;
			snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
			p->size[k] *= vn_like_of_rank(j->use->like, word, looks.shape.dim[a]);
		}
		if (p->size[k] < 0)
			return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s is %s, k and v in one, and nothing says how much of it is which (the other recording has "
			               "neither %s nor a plan)", vn_recording_path(j->rank[0]), e->name, "q", name);
		total += p->size[k];
	}
	return total == length ? VN_OK : vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s has %" PRId64 " numbers along %s, its parts take %" PRId64,
	                                         vn_recording_path(j->rank[0]), e->name, length, axis, total);
}

/* taken[k]: is rank k's in it? whole: how long the axis shall be; -1: as long as comes together. */
static vn_status concatenate(job *j, int i, const int *entry, int axis, const char *word, const bool *taken, int64_t whole)
{
	const vn_entry *e = vn_recording_entry(j->rank[0], i);
	vn_entry  made = *e;
	vn_piece  piece[3 * MOST_RANKS];
	parts     p;
	int       n = 0;
	int64_t   at = 0;
	vn_status st = parts_of(j, e, word, e->shape.dim[axis], &p);
	for (int part = 0; !st && part < p.n; part++)
		for (int k = 0; k < j->n; k++) {
			const vn_entry *d = vn_recording_entry(j->rank[k], entry[k]);
			int64_t stride[VN_MAX_RANK], step = 1, before = 0;
			if (!taken[k])
				continue;
			for (int a = d->shape.rank - 1; a >= 0; a--) {
				stride[a] = step;
				step *= d->shape.dim[a];
				if (a != axis && d->shape.dim[a] != e->shape.dim[a])
					return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s has another shape than in %s", vn_recording_path(j->rank[k]), e->name,
					               vn_recording_path(j->rank[0]));
			}
			if (p.n > 1 && d->shape.dim[axis] != e->shape.dim[axis])
				return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s has another shape than in %s", vn_recording_path(j->rank[k]), e->name,
				               vn_recording_path(j->rank[0]));
			for (int q = 0; q < part; q++)
				before += p.size[q];
			int64_t size = p.n > 1 ? p.size[part] : d->shape.dim[axis];
			if (whole >= 0 && at + size > whole)
				size = whole - at; /* a vocabulary is padded at its end */
			if (size <= 0)
				continue;
			piece[n] = (vn_piece) { .base = k, .entry = entry[k], .from = before * stride[axis] };
			for (int a = 0; a < d->shape.rank; a++) {
				piece[n].size[a] = d->shape.dim[a];
				piece[n].stride[a] = stride[a];
			}
			piece[n].size[axis] = size;
			piece[n++].to[axis] = at;
			at += size;
		}
	if (st)
		return st;
	made.shape.dim[axis] = at;
	j->use->placed++;
	return vn_derive_add(j->made, &made, piece, n, VN_JOIN_PLACED, j->err);
}

/* More ranks than heads of keys: so many ranks have the same one. */
static vn_status one_of_each(job *j, int i, const int *entry, int axis, int64_t heads)
{
	bool      taken[MOST_RANKS] = { false };
	const int each = (int)(j->n / heads);
	vn_status st = VN_OK;
	for (int k = 0; !st && k < j->n; k += each) {
		taken[k] = true;
		st = check_replicas(j, entry, k, k + each);
	}
	return st ? st : concatenate(j, i, entry, axis, "kv_head", taken, -1);
}

static vn_status join(job *j, int i)
{
	const vn_entry *e = vn_recording_entry(j->rank[0], i);
	const char *axes = vn_entry_axes(e), *why;
	int       entry[MOST_RANKS], axis = -1;
	bool      all[MOST_RANKS];
	int64_t   sum = 0;
	vn_dims   dims;
	vn_status st = entries_of(j, i, entry);

	memset(all, 1, sizeof all);
	if (st)
		return st;
	if (!*axes || !vn_dims_parse(axes, &dims, &why) || dims.n != e->shape.rank)
		return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s does not say what its axes are: how its ranks go together is not known",
		               vn_recording_path(j->rank[0]), e->name);
	for (int k = 0; k < dims.n && axis < 0; k++)
		axis = vn_like_sharded(dims.atom[k].word) ? k : -1;
	if (axis < 0)
		return replicated(j, i, entry);
	const char *word = dims.atom[axis].word;
	/* On one rank the whole is asked for: that of the other side. */
	vn_like  whole = *j->use->like;
	whole.ranks = 1;
	vn_looks looks = vn_like_of(&whole, e->name, vn_recording_step(j->rank[0], e->step));
	const int64_t wanted = vn_looks_size(&looks, word);
	for (int k = 0; k < j->n; k++)
		sum += vn_recording_entry(j->rank[k], entry[k])->shape.dim[axis];
	if (wanted > 0 && e->shape.dim[axis] == wanted && sum != wanted)
		return replicated(j, i, entry); /* gathered already, on all of them */
	if (strcmp(word, "kv_head") == 0 && wanted > 0 && wanted < j->n && j->n % wanted == 0 && sum == j->n)
		return one_of_each(j, i, entry, axis, wanted);
	return concatenate(j, i, entry, axis, word, all, strcmp(word, "vocab") == 0 ? wanted : -1);
}

vn_status vn_ranks_join(vn_recording **rank, int n, vn_ranks_use *use, vn_recording **r, vn_error *err)
{
	job j = { .rank = rank, .n = n, .use = use, .err = err };
	vn_status st = n > MOST_RANKS ? vn_fail(err, VN_ERR_USAGE, "more than %d ranks", MOST_RANKS) : VN_OK;

	use->placed = use->summed = use->same = 0;
	*r = NULL;
	if (!st && !(st = in_order(rank, n, err)) && !(st = same_run(rank, n, err)))
		st = vn_derive(vn_recording_path(rank[0]), rank, n, &j.made, err);
	if (!j.made) {
		for (int i = 0; i < n; i++)
			vn_recording_close(rank[i]);
		return st;
	}
	vn_derive_forget_model(j.made);
	for (int i = 0; !st && i < vn_recording_count(rank[0]); i++)
		st = join(&j, i);
	/* What only others have would be left out without a word. */
	for (int k = 1; !st && k < n; k++)
		for (int i = 0; !st && i < vn_recording_count(rank[k]); i++) {
			const vn_entry *e = vn_recording_entry(rank[k], i);
			if (vn_recording_find(rank[0], e->step, e->name) < 0)
				st = vn_fail(err, VN_ERR_MISMATCH, "%s: has no %s in step %d, %s has", vn_recording_path(rank[0]), e->name, e->step,
				             vn_recording_path(rank[k]));
		}
	if (!st)
		st = vn_derive_end(j.made, err);
	if (st) {
		vn_recording_close(j.made);
		return st;
	}
	*r = j.made;
	return VN_OK;
}
