/* ranks.c: see ranks.h: joins tensors that are cut along an axis. */
#include "capture/view/ranks_internal.h"

#include "capture/view/box.h"
#include "capture/view/dims.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The entries of one checkpoint in all ranks; -1 for a rank without it.
 * base: the first rank that has it. */
static vn_status entries_of(const vn_ranks_job *j, int base, int i, int *entry, int *missing)
{
	const vn_entry *e = vn_recording_entry(j->rank[base], i);
	*missing = -1;
	for (int k = 0; k < j->n; k++)
		if ((entry[k] = k == base ? i : vn_recording_find(j->rank[k], e->step, e->name)) < 0)
			*missing = k;
	for (int k = 0; k < j->n; k++) {
		if (k == base || entry[k] < 0)
			continue;
		const vn_entry *d = vn_recording_entry(j->rank[k], entry[k]);
		if (d->shape.rank != e->shape.rank || d->dtype != e->dtype)
			return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s is %s of rank %d, %s of rank %d in %s",
			               vn_recording_path(j->rank[k]), e->name, vn_dtype_name(d->dtype), d->shape.rank,
			               vn_dtype_name(e->dtype), e->shape.rank, vn_recording_path(j->rank[base]));
		if (*d->axes && *e->axes && strcmp(d->axes, e->axes) != 0)
			return vn_fail(j->err, VN_ERR_MISMATCH, "%s: the axes of %s are '%s', in %s '%s'",
			               vn_recording_path(j->rank[k]), e->name, d->axes, vn_recording_path(j->rank[base]), e->axes);
	}
	return VN_OK;
}

/* ---- put together along an axis ------------------------------------------------------------ */

/* The parts of the cut axis on one rank. Each of several parts is joined with the same part of
 * the other ranks. */
typedef struct rank_parts {
	int     n;
	int64_t size[3]; /* on one rank */
} rank_parts;

static vn_status parts_of(const vn_ranks_job *j, const vn_entry *e, const char *axis, int64_t length, rank_parts *p)
{
	static const char *const fused[2][3] = { { "q_proj", "k_proj", "v_proj" }, { "gdn_q", "gdn_k", "gdn_v" } };
	const int                which = strcmp(axis, "qkv") == 0 ? 0 : strcmp(axis, "lin_mix") == 0 ? 1 : -1;
	char                     name[VN_NAME_MAX];
	int64_t                  total = 0;

	*p = (rank_parts) { 1, { length } };
	if (which < 0)
		return VN_OK;
	p->n = 3;
	for (int k = 0; k < 3; k++) {
		snprintf(name, sizeof name, "layer%d.%s", e->layer, fused[which][k]);
		vn_looks looks = vn_like_of(j->use->like, name, vn_recording_step(j->rank[0], e->step));
		p->size[k] = looks.shape.rank < 2 ? -1 : 1;
		for (int a = 1; a < looks.shape.rank; a++) {
			char        word[24];
			size_t      n;
			const char *at = vn_axes_word(looks.axes, a, &n);
			snprintf(word, sizeof word, "%.*s", (int)n, at);
			p->size[k] *= vn_like_of_rank(j->use->like, word, looks.shape.dim[a]);
		}
		if (p->size[k] < 0)
			return vn_fail(j->err, VN_ERR_MISMATCH,
			               "%s: %s is %s, k and v fused, and their sizes are unknown (the other recording has "
			               "neither %s nor a plan)",
			               vn_recording_path(j->rank[0]), e->name, "q", name);
		total += p->size[k];
	}
	return total == length
	           ? VN_OK
	           : vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s has %" PRId64 " numbers along %s, its parts take %" PRId64,
	                     vn_recording_path(j->rank[0]), e->name, length, axis, total);
}

static vn_status other_shape(const vn_ranks_job *j, int k, const vn_entry *d, const vn_entry *e, const char *word)
{
	char a[VN_SHAPE_TEXT], b[VN_SHAPE_TEXT];
	return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s is %s, in %s %s; ranks may differ only along %s",
	               vn_recording_path(j->rank[k]), e->name, vn_shape_text(&d->shape, a), vn_recording_path(j->rank[0]),
	               vn_shape_text(&e->shape, b), word);
}

/* The axis along which parts are joined. taken[k]: rank k contributes. whole: the expected length
 * of the axis; -1: the sum of the parts. */
typedef struct concatenated_axis {
	int         axis;
	const char *word;
	const bool *taken;
	int64_t     whole;
} concatenated_axis;

static vn_status concatenate_parts(vn_ranks_job *j, int i, const int *entry, concatenated_axis along)
{
	const int       axis = along.axis;
	const char     *word = along.word;
	const vn_entry *e = vn_recording_entry(j->rank[0], i);
	vn_entry        made = *e;
	vn_piece        piece[3 * VN_MOST_JOINED];
	rank_parts      p;
	int             n = 0;
	int64_t         at = 0;
	vn_status       st = parts_of(j, e, word, e->shape.dim[axis], &p);
	for (int part = 0; !st && part < p.n; part++)
		for (int k = 0; k < j->n; k++) {
			const vn_entry *d = vn_recording_entry(j->rank[k], entry[k]);
			int64_t         before = 0;
			if (!along.taken[k])
				continue;
			for (int a = d->shape.rank - 1; a >= 0; a--)
				if (a != axis && d->shape.dim[a] != e->shape.dim[a])
					return other_shape(j, k, d, e, word);
			if (p.n > 1 && d->shape.dim[axis] != e->shape.dim[axis])
				return vn_fail(j->err, VN_ERR_MISMATCH,
				               "%s: %s has %" PRId64 " along %s, in %s %" PRId64
				               "; fused parts must be of one size on all ranks",
				               vn_recording_path(j->rank[k]), e->name, d->shape.dim[axis], word,
				               vn_recording_path(j->rank[0]), e->shape.dim[axis]);
			for (int q = 0; q < part; q++)
				before += p.size[q];
			int64_t size = p.n > 1 ? p.size[part] : d->shape.dim[axis];
			if (along.whole >= 0 && at + size > along.whole)
				size = along.whole - at; /* a vocabulary is padded at its end */
			if (size <= 0)
				continue;
			piece[n] = vn_box_whole(k, entry[k], d);
			piece[n].from = before * piece[n].stride[axis];
			piece[n].size[axis] = size;
			piece[n++].to[axis] = at;
			at += size;
		}
	if (st)
		return st;
	made.shape.dim[axis] = at;
	made.not_gathered = strcmp(word, "vocab") == 0;
	j->use->placed++;
	return vn_derive_add(j->made, &made, piece, n, VN_JOIN_PLACED, j->err);
}

/* With more ranks than key heads, groups of ranks hold the same head. */
static vn_status one_of_each(vn_ranks_job *j, int i, const int *entry, int axis, int64_t heads)
{
	bool      taken[VN_MOST_JOINED] = { false };
	const int each = (int)(j->n / heads);
	vn_status st = VN_OK;
	for (int k = 0; !st && k < j->n; k += each) {
		taken[k] = true;
		st = vn_ranks_check_replicas(j, entry, k, k + each);
	}
	return st ? st : concatenate_parts(j, i, entry, (concatenated_axis) { axis, "kv_head", taken, -1 });
}

/* Handles a checkpoint that only some ranks have: what was gathered to them is whole. Scores may be
 * absent on others, because all ranks compute them and few need them. Their vocabulary must be
 * whole; how many tokens they cover is the engine's choice. Every other result, whole or in part,
 * is needed by every rank. */
static vn_status on_some(vn_ranks_job *j, int base, const vn_entry *e, const int *entry, int missing)
{
	vn_like whole = *j->use->like;
	whole.ranks = 1;
	vn_looks      looks = vn_like_of(&whole, e->name, vn_recording_step(j->rank[base], e->step));
	const int     vocab = vn_axes_find(vn_entry_axes(e), "vocab");
	const int64_t wanted = vocab >= 0 ? vn_looks_size(&looks, "vocab") : -1;
	const int64_t had = vocab >= 0 && vocab < e->shape.rank ? e->shape.dim[vocab] : -1;
	vn_status     st = VN_OK;
	if (wanted >= 0 && had >= 0 && had != wanted)
		return vn_fail(
			j->err, VN_ERR_MISMATCH, "%s: has no %s in step %d, and %s has %" PRId64 " of %" PRId64 " along vocab",
			vn_recording_path(j->rank[missing]), e->name, e->step, vn_recording_path(j->rank[base]), had, wanted);
	if (vocab >= 0 ? wanted < 0 || had < 0
	               : looks.shape.rank != e->shape.rank || vn_shape_count(&looks.shape) != vn_shape_count(&e->shape))
		return vn_fail(j->err, VN_ERR_MISMATCH, "%s: has no %s in step %d, %s has", vn_recording_path(j->rank[missing]),
		               e->name, e->step, vn_recording_path(j->rank[base]));
	if (vocab < 0 && !j->use->allow_replicas)
		return vn_fail(
			j->err, VN_ERR_MISMATCH,
			"%s: has no %s in step %d, which every rank should have and %s has (--allow replicas compares that)",
			vn_recording_path(j->rank[missing]), e->name, e->step, vn_recording_path(j->rank[base]));
	for (int k = base + 1; !st && k < j->n; k++)
		if (entry[k] >= 0) {
			const int           two[2] = { entry[base], entry[k] };
			vn_ranks_job        pair = *j;
			vn_recording *const both[2] = { j->rank[base], j->rank[k] };
			pair.rank = both;
			pair.n = 2;
			if (!(st = vn_ranks_same_shape(&pair, two)))
				st = vn_ranks_check_replicas(&pair, two, 0, 2);
		}
	if (st)
		return st;
	vn_ranks_say(j, "%s: whole on rank %d but not on rank %d", e->name, base, missing);
	j->use->same++;
	return vn_derive_keep(j->made, e, base, entry[base], j->err);
}

/* "256 + 256": each rank's part of the cut axis. Returns false when the parts differ in length. */
static bool write_lengths(const vn_ranks_job *j, const int *entry, int axis, char *text, size_t room)
{
	const int64_t first = vn_recording_entry(j->rank[0], entry[0])->shape.dim[axis];
	bool          same = true;
	size_t        used = 0;
	*text = '\0';
	for (int k = 0; k < j->n; k++) {
		const int64_t size = vn_recording_entry(j->rank[k], entry[k])->shape.dim[axis];
		same = same && size == first;
		if (used < room)
			used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, k ? " + " : "", size);
	}
	if (used >= room)
		snprintf(text, room, "%" PRId64 " + ... + %" PRId64, first,
		         vn_recording_entry(j->rank[j->n - 1], entry[j->n - 1])->shape.dim[axis]);
	return same;
}

/* Ranks that differ in shape, by their numbers: rank 0, and the first that differs from it. */
static void say_uneven(vn_ranks_job *j, const int *entry, int axis, const char *word, const char *all)
{
	const vn_entry *e = vn_recording_entry(j->rank[0], entry[0]);
	int             other = 1;
	while (vn_recording_entry(j->rank[other], entry[other])->shape.dim[axis] == e->shape.dim[axis])
		other++;
	vn_ranks_say(j, "%s: ranks differ in shape along %s: rank 0 has %" PRId64 ", rank %d has %" PRId64 " (%s)", e->name,
	             word, e->shape.dim[axis], other, vn_recording_entry(j->rank[other], entry[other])->shape.dim[axis],
	             all);
}

static vn_status join_parts(vn_ranks_job *j, int base, int i)
{
	const vn_entry *e = vn_recording_entry(j->rank[base], i);
	const char     *axes = vn_entry_axes(e), *why;
	int             entry[VN_MOST_JOINED], axis = -1, missing;
	bool            all[VN_MOST_JOINED];
	char            text[160];
	int64_t         sum = 0;
	vn_dims         dims;
	vn_status       st = entries_of(j, base, i, entry, &missing);

	memset(all, 1, sizeof all);
	if (st)
		return st;
	if (missing >= 0)
		return on_some(j, base, e, entry, missing);
	if (!*axes || !vn_dims_parse(axes, &dims, &why) || dims.n != e->shape.rank)
		return vn_fail(j->err, VN_ERR_MISMATCH, "%s: %s does not name its axes: how to join its ranks is unknown",
		               vn_recording_path(j->rank[0]), e->name);
	for (int k = 0; k < dims.n && axis < 0; k++)
		axis = vn_like_sharded(dims.atom[k].word) ? k : -1;
	if (axis < 0)
		return vn_ranks_replicated(j, entry);
	const char *word = dims.atom[axis].word;
	/* On one rank, asks for the whole axis as the other side has it. */
	vn_like     whole = *j->use->like;
	whole.ranks = 1;
	vn_looks      looks = vn_like_of(&whole, e->name, vn_recording_step(j->rank[0], e->step));
	const int64_t wanted = vn_looks_size(&looks, word);
	for (int k = 0; k < j->n; k++)
		sum += vn_recording_entry(j->rank[k], entry[k])->shape.dim[axis];
	if (wanted > 0 && e->shape.dim[axis] == wanted && sum != wanted)
		return vn_ranks_replicated(j, entry); /* every rank has gathered it already */
	if (strcmp(word, "kv_head") == 0 && wanted > 0 && wanted < j->n && j->n % wanted == 0 && sum == j->n)
		return one_of_each(j, i, entry, axis, wanted);
	/* Each rank has an equal share of a padded vocabulary. */
	const bool vocab = strcmp(word, "vocab") == 0, even = write_lengths(j, entry, axis, text, sizeof text);
	j->use->all_told = j->use->all_told || wanted > 0;
	if (wanted > 0 && (vocab && even ? sum < wanted : sum != wanted))
		return vn_fail(j->err, VN_ERR_MISMATCH,
		               "%s: %d ranks have %" PRId64 " of %" PRId64 " along %s of %s together (%s)%s",
		               vn_recording_path(j->rank[0]), j->n, sum, wanted, word, e->name, text,
		               sum < wanted ? ": is a rank missing?" : "");
	if (vocab && !*j->use->not_gathered)
		snprintf(j->use->not_gathered, sizeof j->use->not_gathered, "%s (%s)", e->name, text);
	if (!even)
		say_uneven(j, entry, axis, word, text);
	return concatenate_parts(j, i, entry, (concatenated_axis) { axis, word, all, vocab ? wanted : -1 });
}

/* Name for reports, "runs/rank0.h5 + rank1.h5": a common folder once; when too long,
 * "rank0.h5 and 3 more ranks" plus notes. */
static void name_of(const vn_ranks_job *j, char *text, size_t room)
{
	char        line[PATH_MAX + 40];
	const char *first = vn_recording_path(j->rank[0]), *slash = strrchr(first, '/');
	size_t      used = (size_t)snprintf(text, room, "%s", first), folder = slash ? (size_t)(slash + 1 - first) : 0;
	bool        same = true;
	for (int i = 1; i < j->n; i++) {
		const char *path = vn_recording_path(j->rank[i]), *end = strrchr(path, '/');
		same = same && (end ? (size_t)(end + 1 - path) : 0) == folder && memcmp(path, first, folder) == 0;
	}
	for (int i = 1; i < j->n && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, " + %s",
		                         vn_recording_path(j->rank[i]) + (same ? folder : 0));
	if (used < room)
		return;
	snprintf(text, room, "%.*s and %d more ranks", (int)(room / 2), vn_recording_path(j->rank[0]), j->n - 1);
	for (int i = 0; j->use->say && i < j->n; i++) {
		snprintf(line, sizeof line, "rank %d is %s", i, vn_recording_path(j->rank[i]));
		j->use->say(j->use->context, vn_text_clean(line, sizeof line));
	}
}

vn_status vn_ranks_join(vn_recording **rank, int n, vn_ranks_use *use, vn_recording **r, vn_error *err)
{
	vn_ranks_job j = { .rank = rank, .n = n, .use = use, .err = err };
	char         name[1024];
	vn_status    st = n > VN_MOST_JOINED ? vn_fail(err, VN_ERR_USAGE, "more than %d ranks", VN_MOST_JOINED) : VN_OK;

	use->placed = use->summed = use->same = 0;
	use->all_told = false;
	*use->not_gathered = '\0';
	*r = NULL;
	if (!st && !(st = vn_ranks_which(rank, n, use, err))) {
		name_of(&j, name, sizeof name);
		st = vn_derive(name, rank, n, &j.made, err);
	}
	if (!j.made) {
		for (int i = 0; i < n; i++)
			vn_recording_close(rank[i]);
		return st;
	}
	vn_derive_forget_model(j.made);
	vn_derive_ranks(j.made, n);
	/* Takes each checkpoint once, from the first rank that has it. */
	for (int k = 0; !st && k < n; k++)
		for (int i = 0; !st && i < vn_recording_count(rank[k]); i++) {
			const vn_entry *e = vn_recording_entry(rank[k], i);
			bool            before = false;
			for (int q = 0; q < k && !before; q++)
				before = vn_recording_find(rank[q], e->step, e->name) >= 0;
			if (!before)
				st = join_parts(&j, k, i);
		}
	if (!st && j.left_out && use->say) {
		char more[80];
		snprintf(more, sizeof more, "%d more notes on how tensors were joined are left out", j.left_out);
		use->say(use->context, more);
	}
	st = st ? st : vn_derive_end(j.made, err);
	if (st) {
		vn_recording_close(j.made);
		return st;
	}
	*r = j.made;
	return VN_OK;
}
