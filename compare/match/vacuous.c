/* vacuous.c: finds pairs that agree but prove nothing.
 *
 * Zeros on both sides, or one number everywhere, come from recorders that never read the tensor;
 * another layer's numbers on both sides from a common hook that is wrong; another step's from
 * reading too early. And a token whose scores are all masked has no softmax.
 */
#include "compare/comparison/checkpoint.h"
#include "compare/match/match.h"

#include "libref/plan/point.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char constant[] = "both sides hold one constant, so nothing was compared";
static const char blind[] =
	"both sides hold minus infinity for every key of some token, so that token was not compared";
static const char stale[] =
	"both sides hold the numbers of this point in another layer, so this layer was not compared";
static const char left_over[] =
	"both sides hold the numbers of another step with other tokens, so this step was not compared";

/* Whether an entry is a table of whole numbers that may be constant: a cache may have one block,
 * and all tokens may belong to one sequence. A tensor that the model computes under another name is
 * not such a table even when it is stored as int32. */
static bool is_table(const vn_entry *e)
{
	static const char *const list[] = { "block_table",  "block_tables", "slot_mapping", "slot_map",      "seq_lens",
		                                "seq_ids",      "token_ids",    "input_ids",    "ids",           "positions",
		                                "position_ids", "argmax",       "mask",         "attention_mask" };
	const char              *dot = strrchr(e->name, '.'), *last = dot ? dot + 1 : e->name;
	for (size_t i = 0; e->dtype == VN_I32 && i < sizeof list / sizeof *list; i++)
		if (strcmp(last, list[i]) == 0)
			return true;
	return false;
}

/* Probabilities over one key and normalised weights of one expert are always 1, a prediction head
 * has zeros for what comes before the first token, tables may be constant, and a single number is
 * always constant. */
static bool may_be_constant(const vn_entry *e)
{
	static const vn_point among_one[] = { VN_POINT_ATTN_PROBS, VN_POINT_ROUTER_IDS, VN_POINT_ROUTER_WEIGHTS };
	static const vn_point before[] = { VN_POINT_MTP_HIDDEN, VN_POINT_MTP_HIDDEN_NORM };
	const vn_shape       *s = &e->shape;
	bool                  may = is_table(e) || vn_shape_count(s) < 2;

	for (size_t i = 0; i < sizeof among_one / sizeof *among_one; i++)
		may = may || (vn_entry_point(e) == vn_point_get(among_one[i]) && s->dim[s->rank - 1] == 1);
	for (size_t i = 0; i < sizeof before / sizeof *before; i++)
		may = may || (vn_entry_point(e) == vn_point_get(before[i]) && s->dim[0] == 1);
	return may;
}

/* Whether all numbers seem as large as the largest, which deserves a closer look. */
static bool looks_constant(const vn_measured *m)
{
	return m->finite == m->n && fabs(m->ref_rms - m->absmax[0]) <= 1e-6 * m->absmax[0] &&
	       fabs(m->ref_rms * m->value[VN_M_NORM_RATIO] - m->absmax[1]) <= 1e-6 * m->absmax[1];
}

typedef bool tensor_test(const vn_tensor *a, const vn_tensor *b);

static bool same_bytes(const vn_tensor *a, const vn_tensor *b)
{
	return a->dtype == b->dtype && vn_shape_equal(&a->shape, &b->shape) &&
	       memcmp(a->data, b->data, (size_t)vn_shape_count(&a->shape) * vn_dtype_size(a->dtype)) == 0;
}

static bool is_constant(const vn_tensor *t, const vn_tensor *b)
{
	const size_t         width = vn_dtype_size(t->dtype), n = (size_t)vn_shape_count(&t->shape);
	const unsigned char *data = t->data;
	(void)b;
	return memcmp(data, data + width, (n - 1) * width) == 0;
}

static bool is_any_finite(const vn_tensor *t, int64_t from, int64_t n)
{
	for (int64_t i = from; i < from + n; i++)
		if (isfinite(vn_tensor_number(t, i)))
			return true;
	return false;
}

/* The last axis holds the keys. */
static bool masks_a_row(const vn_tensor *t, const vn_tensor *b)
{
	const int64_t keys = t->shape.dim[t->shape.rank - 1], n = vn_shape_count(&t->shape);
	(void)b;
	for (int64_t i = 0; i < n; i += keys)
		if (!is_any_finite(t, i, keys))
			return true;
	return false;
}

/* Looks at one side. A tensor that cannot be read again gives no finding here. */
static vn_status look_at(vn_recording *r, int a, int b, tensor_test *f, bool *yes, vn_error *err)
{
	vn_tensor x, y;
	vn_error  why = { "" };
	vn_status st = vn_entry_tensor(r, a, &x, &why);
	if (!st && !(st = vn_entry_tensor(r, b, &y, &why)))
		*yes = f(&x, &y);
	else
		*yes = false;
	vn_recording_release(r, a);
	if (b != a)
		vn_recording_release(r, b);
	return vn_status_ends_job(st) ? vn_fail(err, st, "%s", why.text) : VN_OK;
}

static vn_status look_at_both(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q, tensor_test *f,
                              bool *yes, vn_error *err)
{
	const vn_status st = look_at(o->ref, p->ref, q->ref, f, yes, err);
	return st || !*yes ? st : look_at(o->cand, p->cand, q->cand, f, yes, err);
}

/* ---- another layer's ------------------------------------------------------------------------- */

static int compare_numbers(const vn_checkpoint *a, const vn_checkpoint *b)
{
	const double x[] = { a->m.ref_rms, a->m.absmax[0], a->m.absmax[1], a->m.value[VN_M_NMSE], (double)a->m.n };
	const double y[] = { b->m.ref_rms, b->m.absmax[0], b->m.absmax[1], b->m.value[VN_M_NMSE], (double)b->m.n };
	for (size_t i = 0; i < sizeof x / sizeof *x; i++)
		if (x[i] != y[i])
			return (x[i] > y[i]) - (x[i] < y[i]);
	return 0;
}

/* In execution order at last. */
VN_ORDER_BY(by_point, vn_checkpoint *const, VN_ORDER((*x)->step, (*y)->step), strcmp(vn_point_of(*x), vn_point_of(*y)),
            compare_numbers(*x, *y), VN_ORDER(*x, *y))

/* Few numbers may be equal by chance, in 8 bits or when saturated. Evidence against chance is the
 * number of distinct nonzero values times the stored bits of the significand; the leading bit is
 * always 1 and carries no information. 3 values are enough in float32, 7 in float16, 10 in bfloat16
 * and 22 in float8 (e4m3). Whole numbers, such as ids of experts, have the bits of the largest. */
enum { ENOUGH_BITS = 64 };

static int bits_of(const vn_tensor *t)
{
	const int64_t n = vn_shape_count(&t->shape);
	const int     digits = vn_dtype_digits(t->dtype);
	double        most = 1;

	for (int64_t i = 0; i < n; i++) {
		const double x = fabs(vn_tensor_number(t, i));
		if (!(x < ldexp(1, digits)) || x != floor(x))
			return digits;
		most = x > most ? x : most;
	}
	return ilogb(most) + 1;
}

/* Reading t is enough: b has the same bytes. */
static bool no_chance(const vn_tensor *t, const vn_tensor *b)
{
	const int     bits = bits_of(t), most = (ENOUGH_BITS + bits - 1) / bits;
	const int64_t n = vn_shape_count(&t->shape);
	double        different[ENOUGH_BITS];
	int           k = 0;
	(void)b;
	for (int64_t i = 0; i < n && k < most; i++) {
		int          at = 0;
		const double x = vn_tensor_number(t, i);
		while (at < k && different[at] != x)
			at++;
		if (at == k && x != 0.0 && isfinite(x))
			different[k++] = x;
	}
	return k >= most;
}

/* Whether both sides hold the same numbers twice, and too many of them to be equal by chance. */
static vn_status held_twice(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q, bool *yes,
                            vn_error *err)
{
	vn_status st = look_at_both(o, p, q, same_bytes, yes, err);
	if (st || !*yes || (st = look_at(o->ref, p->ref, p->ref, no_chance, yes, err)) || *yes)
		return st;
	return look_at(o->cand, p->cand, p->cand, no_chance, yes, err);
}

static bool in_a_layer(const vn_opened *o, const vn_checkpoint *p)
{
	(void)o;
	return p->layer >= 0 && !p->vacuous && p->m.absmax[0] > 0;
}

static bool is_another_layers(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q)
{
	(void)o;
	return strcmp(vn_point_of(p), vn_point_of(q)) == 0 && p->step == q->step && p->layer != q->layer &&
	       !(p->value >= 0 && p->value == q->value);
}

/* ---- another step's -------------------------------------------------------------------------- */

/* Names are kept once. */
VN_ORDER_BY(compare_names, vn_checkpoint *const, (*x)->name == (*y)->name ? 0 : strcmp((*x)->name, (*y)->name),
            compare_numbers(*x, *y), VN_ORDER((*x)->step, (*y)->step))

/* Number of tokens whose rows the tensor holds. 0: it is no checkpoint of a plan, and may be a mask
 * or table that never changes. */
static int64_t rows_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_entry *e = vn_recording_entry(o->ref, p->ref);
	const int       axis = !vn_entry_point(e) ? -1 : vn_axes_find(vn_entry_axes(e), "token");
	return axis >= 0 && axis < e->shape.rank ? e->shape.dim[axis] : 0;
}

static bool has_rows(const vn_opened *o, const vn_checkpoint *p)
{
	return !p->vacuous && p->m.absmax[0] > 0 && rows_of(o, p) > 0;
}

/* The token ids of the tensor's rows, which are the last rows of its step; NULL: unknown. */
static const int32_t *ids_of(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_step *s = vn_recording_step(o->ref, p->step);
	const int32_t *id, *at;
	const int64_t  all = vn_recording_tokens(o->ref, &id, &at), end = s ? s->position + s->first_row + s->rows : 0;
	return end >= rows_of(o, p) && end <= all && id ? id + end - rows_of(o, p) : NULL;
}

static bool is_another_steps(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q)
{
	if (p->step == q->step || strcmp(p->name, q->name) != 0 || rows_of(o, p) != rows_of(o, q))
		return false;
	const int32_t *x = ids_of(o, p), *y = ids_of(o, q);
	return x && y && memcmp(x, y, (size_t)rows_of(o, p) * sizeof *x) != 0;
}

/* Looks up the first of these points that both steps of the reference have, and compares its
 * numbers. found: there is one. */
static vn_status same_at(const vn_opened *o, const int step[2], const char *const *name, bool *found, bool *yes,
                         vn_error *err)
{
	int a = -1, b = -1;
	for (; *name && (a < 0 || b < 0); name++) {
		a = vn_recording_find(o->ref, step[0], *name);
		b = vn_recording_find(o->ref, step[1], *name);
	}
	*found = a >= 0 && b >= 0;
	*yes = false;
	return *found ? look_at(o->ref, a, b, same_bytes, yes, err) : VN_OK;
}

/* Two tokens that were never trained may have the same embedding. Then everything that does not
 * attend to earlier tokens is equal: also the first norm, unless positions were added, but nothing
 * after attention. An embedding that was not read again proves nothing; neither do the scores of a
 * step that was not read at all. */
static vn_status tokens_alike(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q, bool *yes,
                              vn_error *err)
{
	static const char *const embedding[] = { "token_embed", "embed", NULL }, *const positions[] = { "pos_embed", NULL },
							 *const norm[] = { "layer0.attn_norm", NULL },
							 *const behind[] = { "logits", "final_norm", "layer0.output", "layer0.attn_out", NULL };
	const int                       both[2] = { p->step, q->step };
	bool                            found, same;
	vn_status                       st = same_at(o, both, embedding, &found, yes, err);

	if (st || !*yes)
		return st;
	if ((st = same_at(o, both, behind, &found, &same, err)) || same) {
		*yes = false;
		return st;
	}
	if ((st = same_at(o, both, positions, &found, &same, err)) || found)
		return st;
	st = same_at(o, both, norm, &found, &same, err);
	*yes = !found || same;
	return st;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The key by which equal tensors are sorted next to each other, and the kind of repetition that
 * makes the later of two equal ones vacuous. */
typedef struct repetition_kind {
	bool (*take)(const vn_opened *o, const vn_checkpoint *p);
	int (*order)(const void *a, const void *b);
	bool (*found)(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q);
	/* Sets *yes if the two are equal for a good reason; NULL: there is none. */
	vn_status (*but)(const vn_opened *o, const vn_checkpoint *p, const vn_checkpoint *q, bool *yes, vn_error *err);
	const char *says;
} repetition_kind;

static vn_status find_stale(const vn_opened *o, vn_checkpoints *all, const repetition_kind *k, vn_error *err)
{
	VN_FREED vn_checkpoint **sorted = vn_alloc((size_t)all->n, sizeof(vn_checkpoint *));
	vn_status                st = VN_OK;
	int                      n = 0;

	for (int i = 0; i < all->n; i++)
		if (k->take(o, &all->of[i]))
			sorted[n++] = &all->of[i];
	qsort(sorted, (size_t)n, sizeof *sorted, k->order);
	for (int i = 1; !st && i < n; i++) {
		vn_checkpoint *p = sorted[i], *q = sorted[i - 1];
		bool           same = compare_numbers(p, q) == 0 && k->found(o, p, q), right = false;
		if (same)
			vn_opened_was_read(o, p);
		if (same && !(st = held_twice(o, p, q, &same, err)) && same &&
		    !(st = k->but ? k->but(o, p, q, &right, err) : VN_OK) && !right)
			p->vacuous = k->says;
	}
	return st;
}

vn_status vn_match_find_vacuous(const vn_opened *o, vn_checkpoints *all, vn_error *err)
{
	static const repetition_kind layers = { in_a_layer, by_point, is_another_layers, NULL, stale },
								 steps = { has_rows, compare_names, is_another_steps, tokens_alike, left_over };
	for (int i = 0; i < all->n; i++) {
		vn_checkpoint *p = &all->of[i];
		bool           yes = p->m.n && !may_be_constant(vn_recording_entry(o->ref, p->ref)) && looks_constant(&p->m);
		vn_status      st;
		const bool     zero = yes && p->m.absmax[0] == 0 && p->m.absmax[1] == 0; /* whichever their signs */
		if (yes && !zero && (st = look_at_both(o, p, p, is_constant, &yes, err)))
			return st;
		if (yes) {
			p->vacuous = constant;
			vn_opened_was_read(o, p);
		}
		yes = p->m.masked > 0;
		if (yes && (st = look_at(o->ref, p->ref, p->ref, masks_a_row, &yes, err)))
			return st;
		if (yes) {
			p->vacuous = blind;
			vn_opened_was_read(o, p);
		}
	}
	vn_status st = find_stale(o, all, &layers, err);
	st = st ? st : find_stale(o, all, &steps, err);
	vn_opened_forget(o);
	return st;
}
