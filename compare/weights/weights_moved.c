/* weights_moved.c: finds where the rows or columns of a weight went: by the numbers of both sides,
 * which show every order; else by trying orders against the digest of the other side. */
#include "compare/weights/weights_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>

enum {
	SHARDS = 8,    /* the most blocks that are called the shards of ranks */
	LISTED = 4,    /* the most shards tried in every order without both sides' numbers */
	HEADS = 16,    /* the most heads listed one by one */
	EXAMPLES = 3,  /* of lines that moved in no known order */
	LIST_TEXT = 80 /* of VN_WEIGHT_WORDS */
};

/* The rows (axis 0) or columns (axis 1) of a weight, and where they come from. */
typedef struct line_order {
	int                      axis;
	int64_t                  n;
	int64_t                  width;   /* of a head along this axis; 0: there are none, or it is not known */
	int                     *from;    /* (n), line i of the candidate is line from[i] of the reference */
	int                     *trial;   /* (n), the same for a rule that is tried */
	uint64_t                *hash[2]; /* (n), of the lines of both sides, if `from` is known */
	const vn_weight_trial   *weight;
	/* of side `given`, to be rearranged and compared with the other's digest; NULL: `from` is
	 * known */
	const vn_weight_numbers *m;
	int                      given;
} line_order;

static const char *plural(const line_order *l)
{
	return l->axis ? "columns" : "rows";
}

/* ---- read off both sides --------------------------------------------------------------- */

typedef struct line_hash {
	uint64_t hash;
	int      at; /* -1: taken */
} line_hash;

VN_ORDER_BY(by_hash, line_hash, VN_ORDER(x->hash, y->hash), VN_ORDER(x->at, y->at))

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Reads row r of N numbers into x, rounded to a format. y: (N) numbers of scratch. */
static void read_row(const vn_tensor *t, vn_dtype as, int64_t r, int64_t N, double *x, double *y)
{
	const size_t at = vn_dtype_bytes(t->dtype, (size_t)(r * N));
	vn_to_f64(x, (const unsigned char *)t->data + at, t->dtype, (size_t)N);
	vn_from_f64(y, as, x, (size_t)N);
	vn_to_f64(x, y, as, (size_t)N);
}

/* Adds the numbers of a tensor, rounded to a format, to the hash of their row or column. x, y:
 * (cols) numbers of scratch. */
static void hash_lines(const vn_tensor *t, vn_dtype as, int axis, uint64_t *h, double *x, double *y)
{
	const int64_t M = t->shape.dim[0], N = M ? vn_shape_count(&t->shape) / M : 0;

	for (int64_t r = 0; r < M; r++) {
		read_row(t, as, r, N, x, y);
		for (int64_t c = 0; c < N; c++) {
			uint64_t bits;
			memcpy(&bits, &x[c], sizeof bits);
			h[axis ? c : r] = mix(h[axis ? c : r], bits);
		}
	}
}

/* The first of n sorted hashes that is this one; n: there is none. */
static int64_t find_hash(const line_hash *h, int64_t n, uint64_t hash)
{
	int64_t low = 0, high = n;
	while (low < high) {
		const int64_t mid = low + (high - low) / 2;
		if (h[mid].hash < hash)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && h[low].hash == hash ? low : n;
}

/* Takes the line of the reference that equals the candidate's line i and is not taken: of several,
 * the one that follows the last, then the first. */
static bool take_line(line_hash *ref, int64_t n, uint64_t hash, int last, int *from)
{
	const int64_t first = find_hash(ref, n, hash);
	int64_t       best = -1;

	for (int64_t k = first; k < n && ref[k].hash == hash && (best < 0 || ref[best].at != last + 1); k++)
		if (ref[k].at >= 0 && (best < 0 || ref[k].at == last + 1))
			best = k;
	if (best < 0)
		return false;
	*from = ref[best].at;
	ref[best].at = -1;
	return true;
}

/* The numbers of the coarser format are what both sides can share. Blocks are read as f32. */
static vn_dtype shared_format(const vn_tensor *const both[2])
{
	const vn_dtype a = vn_dtype_block(both[0]->dtype) > 1 ? VN_F32 : both[0]->dtype,
				   b = vn_dtype_block(both[1]->dtype) > 1 ? VN_F32 : both[1]->dtype;
	return vn_dtype_digits(a) < vn_dtype_digits(b) ? a : b;
}

/* Fills l->hash. */
static void hash_both(line_order *l)
{
	const vn_tensor *const *both = l->weight->numbers;
	const int64_t           N = vn_shape_count(&both[0]->shape) / both[0]->shape.dim[0];
	const vn_dtype          as = shared_format(both);
	VN_FREED double        *x = vn_alloc((size_t)N, sizeof *x), *y = vn_alloc((size_t)N, sizeof *y);

	for (int k = 0; k < 2; k++) {
		l->hash[k] = vn_alloc_zero((size_t)l->n, sizeof *l->hash[k]);
		hash_lines(both[k], as, l->axis, l->hash[k], x, y);
	}
}

/* Fills l->from if the candidate's lines are the reference's in another order. A line that is in
 * its place stays there; the others follow each other as far as equal lines allow. */
static bool read_order(line_order *l)
{
	VN_FREED line_hash *ref = vn_alloc((size_t)l->n, sizeof *ref);
	bool                good = true, moved = false;

	hash_both(l);
	for (int i = 0; i < l->n; i++)
		ref[i] = (line_hash) { l->hash[0][i], l->hash[0][i] == l->hash[1][i] ? -1 : i };
	qsort(ref, (size_t)l->n, sizeof *ref, by_hash);
	for (int i = 0; good && i < l->n; i++) {
		l->from[i] = i;
		if (l->hash[0][i] == l->hash[1][i])
			continue;
		good = take_line(ref, l->n, l->hash[1][i], i ? l->from[i - 1] : -1, &l->from[i]);
		moved = true;
	}
	return good && moved;
}

/* ---- rules ------------------------------------------------------------------------------ */

/* Does the candidate have the reference's lines in the order of l->trial? */
static bool is_order(const line_order *l)
{
	if (!l->m) {
		int i = 0;
		while (i < l->n && l->hash[0][l->trial[i]] == l->hash[1][i])
			i++;
		return i == l->n;
	}
	if (l->given) /* the candidate's numbers, put back */
		for (int i = 0; i < l->n; i++)
			l->from[l->trial[i]] = i;
	const vn_weight_order o = { .axis = l->axis ? VN_WEIGHT_COLUMNS : VN_WEIGHT_ROWS,
		                        .rule = { VN_ARRANGE_LISTED, .a = l->n, .list = l->given ? l->from : l->trial } };
	return vn_weight_has_order(l->weight, !l->given, l->m, &o, &vn_weight_unchanged, 0);
}

static vn_weight_proof proof_of(const line_order *l)
{
	return l->m ? VN_PROOF_DIGEST : VN_PROOF_NUMBERS;
}

/* Tries one arrangement, or `then` of lines that `first` has arranged; NULL: none. */
static bool is_arranged(const line_order *l, const vn_arrange *first, const vn_arrange *then)
{
	bool moves = false;
	for (int64_t i = 0; i < l->n; i++) {
		l->trial[i] = (int)vn_arranged(first, then ? vn_arranged(then, i, l->n) : i, l->n);
		moves = moves || l->trial[i] != i;
	}
	return moves && is_order(l);
}

/* Were the rows of q or k permuted between the pairs of RoPE with another number of heads than the
 * weight has, or with the right number there and another one back? */
static bool by_pairs(const line_order *l, vn_weight_difference *d)
{
	static const char *const pairs[] = { "neighbouring pairs", "split halves" };
	const int64_t            K = l->width;

	for (int64_t w = 4; w <= l->n; w += 2) {
		if (l->n % w || w == K)
			continue;
		for (int back = 0; back < 2; back++) {
			vn_arrange own = { VN_ARRANGE_TRANSPOSED, .a = 2, .b = K / 2, .period = K },
					   other = { VN_ARRANGE_TRANSPOSED, .a = 2, .b = w / 2, .period = w };
			own = back ? vn_arrange_back(&own) : own;
			other = back ? vn_arrange_back(&other) : other;
			const vn_arrange undone = vn_arrange_back(&other);
			if (is_arranged(l, &own, &undone))
				return vn_weight_is(d, 1, proof_of(l), VN_FOUND(PAIRS_AND_BACK), pairs[back], (int)(l->n / K),
				                    (int)(l->n / w));
			if (is_arranged(l, &other, NULL))
				return vn_weight_is(d, 1, proof_of(l), VN_FOUND(PAIRS_OF_OTHERS), pairs[back], (int)(l->n / w),
				                    (int)(l->n / K));
		}
	}
	return false;
}

/* Are the heads transposed, such as (group, key head) for (key head, group)? */
static bool by_transposed_heads(const line_order *l, vn_weight_difference *d)
{
	const int64_t heads = l->n / l->width;

	for (int64_t a = 2; a < heads; a++) {
		const vn_arrange rule = { VN_ARRANGE_TRANSPOSED, .a = a, .b = heads / a, .each = l->width };
		if (heads % a == 0 && is_arranged(l, &rule, NULL))
			return vn_weight_is(d, 1, proof_of(l), VN_FOUND(HEADS_TRANSPOSED), (int)heads, plural(l), (int)a,
			                    (int)(heads / a), (int)(heads / a), (int)a);
	}
	return false;
}

/* ---- lists ------------------------------------------------------------------------------ */

/* Writes "2, 0, 3, 1": which block of the reference is at each place. */
static void list_blocks(const int *from, int n, int64_t block, char text[LIST_TEXT])
{
	*text = 0;
	for (int i = 0; i < n; i++)
		vn_text_add(text, LIST_TEXT, "%s%d", i ? ", " : "", (int)(from[i * block] / block));
}

static bool say_shards(const line_order *l, const int *from, int ranks, vn_weight_difference *d)
{
	char text[LIST_TEXT];
	list_blocks(from, ranks, l->n / ranks, text);
	return vn_weight_is(d, 1, proof_of(l), VN_FOUND(SHARDS_LISTED), ranks, plural(l), text);
}

static int64_t gcd(int64_t a, int64_t b)
{
	while (b) {
		const int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* The lines that always stay together, as many as possible. */
static int64_t block_of(const line_order *l)
{
	int64_t block = l->n;
	for (int64_t i = 0; i < l->n; i++)
		if (i == 0 || l->from[i] != l->from[i - 1] + 1)
			block = gcd(gcd(block, i), l->from[i]);
	return block;
}

static bool say_some(const line_order *l, vn_weight_difference *d)
{
	char text[LIST_TEXT] = "";
	int  moved = 0;

	for (int64_t i = 0; i < l->n; i++)
		if (l->from[i] != i && moved++ < EXAMPLES)
			vn_text_add(text, sizeof text, "%s%s %d holds %d", *text ? ", " : "", l->axis ? "column" : "row", (int)i,
			            l->from[i]);
	return vn_weight_is(d, 1, proof_of(l), VN_FOUND(LINES_MOVED), moved, (int)l->n, plural(l), text);
}

/* Says an order that was read off both sides and is that of no rule. */
static bool say_read(const line_order *l, vn_weight_difference *d)
{
	const int64_t block = block_of(l), heads = l->width ? l->n / l->width : 0;
	char          text[LIST_TEXT];

	if (l->width && block % l->width == 0 && heads <= HEADS && heads > SHARDS) {
		list_blocks(l->from, (int)heads, l->width, text);
		return vn_weight_is(d, 1, proof_of(l), VN_FOUND(HEADS_LISTED), (int)heads, plural(l), text);
	}
	return block > 1 && l->n / block <= SHARDS ? say_shards(l, l->from, (int)(l->n / block), d) : say_some(l, d);
}

/* ---- without the numbers of both --------------------------------------------------------- */

/* The next order of the list, as numbers with one digit for each block; false after the last. */
static bool next_order(int at[LISTED], int n)
{
	int i = n - 1, j = n - 1, x;

	while (i > 0 && at[i - 1] > at[i])
		i--;
	if (i <= 0)
		return false;
	while (at[j] < at[i - 1])
		j--;
	x = at[i - 1], at[i - 1] = at[j], at[j] = x;
	for (j = n - 1; i < j; i++, j--)
		x = at[i], at[i] = at[j], at[j] = x;
	return true;
}

static bool by_list(const line_order *l, vn_weight_difference *d)
{
	for (int ranks = 2; ranks <= LISTED; ranks++) {
		int           at[LISTED] = { 0, 1, 2, 3 };
		const int64_t block = l->n / ranks;
		if (l->n % ranks || block < 2)
			continue;
		while (next_order(at, ranks)) {
			for (int64_t i = 0; i < l->n; i++)
				l->trial[i] = (int)(at[i / block] * block + i % block);
			if (is_order(l))
				return say_shards(l, l->trial, ranks, d);
		}
	}
	return false;
}

/* ---- all together -------------------------------------------------------------------------- */

/* Width of the heads that lie along an axis; 0: none. */
static int64_t head_width(const vn_weight_trial *t, int axis, int64_t n)
{
	const int  part = t->name.part;
	const bool rows = part == VN_POINT_Q_PROJ || part == VN_POINT_K_PROJ || part == VN_POINT_V_PROJ;
	const int  K = t->heads.K;
	return K >= 2 && n % K == 0 && (axis ? part == VN_POINT_ATTN_OUT : rows) ? K : 0;
}

static bool turns(const vn_weight_trial *t)
{
	return t->name.part == VN_POINT_Q_PROJ || t->name.part == VN_POINT_K_PROJ;
}

static bool look_along(line_order *l, vn_weight_difference *d)
{
	if (!l->m && !read_order(l))
		return false;
	if (l->axis == 0 && turns(l->weight) && l->width >= 4 && l->width % 2 == 0 && by_pairs(l, d))
		return true;
	if (l->width && by_transposed_heads(l, d))
		return true;
	return l->m ? by_list(l, d) : say_read(l, d);
}

/* Are all numbers the same ones, in whatever order? */
static bool same_numbers(const vn_weight_trial *t)
{
	const vn_dtype   as = shared_format(t->numbers);
	uint64_t         sum[2][2] = { 0 };
	const int64_t    M = t->numbers[0]->shape.dim[0], N = vn_shape_count(&t->numbers[0]->shape) / M;
	VN_FREED double *x = vn_alloc((size_t)N, sizeof *x), *y = vn_alloc((size_t)N, sizeof *y);

	for (int k = 0; k < 2; k++)
		for (int64_t r = 0; r < M; r++) {
			read_row(t->numbers[k], as, r, N, x, y);
			for (int64_t c = 0; c < N; c++) {
				uint64_t bits;
				memcpy(&bits, &x[c], sizeof bits);
				sum[k][0] += mix(1, bits);
				sum[k][1] += mix(mix(2, bits), bits);
			}
		}
	return sum[0][0] == sum[1][0] && sum[0][1] == sum[1][1];
}

/* Can rows be read one by one? Blocks of a list of numbers, or of short rows, span several. */
static bool whole_rows(const vn_tensor *t)
{
	return vn_shape_count(&t->shape) / t->shape.dim[0] % (int64_t)vn_dtype_block(t->dtype) == 0;
}

bool vn_weight_moved(const vn_weight_trial *t, int given, const vn_weight_numbers *m, vn_weight_difference *d)
{
	const vn_weight_row *a = t->row[0], *b = t->row[1];
	const bool           both = t->numbers[0] && t->numbers[1];
	const int            axes = a->shape.rank;
	bool                 found = false;

	if (axes < 1 || axes > 2 || vn_shape_count(&a->shape) == 0 || !vn_shape_equal(&a->shape, &b->shape) ||
	    vn_dtype_block(b->dtype) > 1 || (both ? !whole_rows(t->numbers[0]) : a->dtype != b->dtype || axes != 2) ||
	    (a->dtype == b->dtype && vn_weights_same(a, b)))
		return false;
	for (int axis = 0; !found && axis < axes; axis++) {
		line_order l = { .axis = axis, .n = a->shape.dim[axis], .weight = t, .m = both ? NULL : m, .given = given };
		if (l.n < 2 || l.n > INT32_MAX)
			continue;
		l.width = head_width(t, axis, l.n);
		l.from = vn_alloc((size_t)l.n, sizeof *l.from);
		l.trial = vn_alloc((size_t)l.n, sizeof *l.trial);
		found = look_along(&l, d);
		VN_FREE(l.from, l.trial, l.hash[0], l.hash[1]);
	}
	return found || (both && same_numbers(t) && vn_weight_is(d, 1, VN_PROOF_NUMBERS, VN_FOUND(ORDER)));
}
