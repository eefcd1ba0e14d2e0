/* recording_read.c: reads a part of a tensor, wherever its numbers are; see vn_recording_read.
 *
 * Whatever is between a tensor and its file (another order of axes, pieces of several tensors)
 * becomes nested loops over a source. They read the source in stretches, with its axes in their own
 * order, so that a stretch is as long as possible. A request to the source is again for a part of a
 * tensor, until the source is a file.
 */
#include "capture/recording/recording_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* STRETCH_BYTES: most bytes read in one call. GAP_BYTES: the largest gap between two numbers read
 * in one call; reading it costs no more than another call. */
enum { STRETCH_BYTES = 64 << 10, GAP_BYTES = 4096 };

/* Nested loops over `rank` axes: their sizes, and their strides in the source and in the
 * result, in elements. */
typedef struct nest_axis {
	int64_t size, from, to;
} nest_axis;
typedef struct nest {
	int       rank;
	nest_axis axis[VN_MAX_RANK];
	vn_dtype  dtype; /* of the source */
	bool      add;   /* adds to the doubles of the result; otherwise copies, and the result has the source's dtype */
} nest;

/* The numbers of entry i: as stored (own), or through its view. */
typedef struct entry_numbers {
	vn_recording *r;
	int           i;
	bool          own;
} entry_numbers;

static vn_status read_flat(entry_numbers x, int64_t from, int64_t n, void *to, vn_error *err);

/* ---- numbers from here to there ---------------------------------------------------------- */

#define COPY(type) \
	do { \
		for (int64_t i = 0; i < n; i++) \
			memcpy(to + (size_t)(i * to_step) * sizeof(type), from + (size_t)(i * from_step) * sizeof(type), \
			       sizeof(type)); \
	} while (0)

static void copy_run(unsigned char *to, int64_t to_step, const unsigned char *from, int64_t from_step, int64_t n,
                     size_t size)
{
	if (to_step == 1 && from_step == 1)
		memcpy(to, from, (size_t)n * size);
	else if (size == 1)
		COPY(uint8_t);
	else if (size == 2)
		COPY(uint16_t);
	else if (size == 4)
		COPY(uint32_t);
	else
		COPY(uint64_t);
}

static void add_run(double *to, int64_t to_step, const unsigned char *from, int64_t from_step, int64_t n,
                    vn_dtype dtype)
{
	const size_t size = vn_dtype_size(dtype);
	for (int64_t i = 0; i < n; i++) {
		double x;
		vn_to_f64(&x, from + (size_t)(i * from_step) * size, dtype, 1);
		to[i * to_step] += x;
	}
}

/* Writes the axes from `axis` on, `count` of the first, out of a stretch.
 * to: address of the first element. */
static void scatter_elements(const nest *k, int axis, int64_t count, unsigned char *to, const unsigned char *from)
{
	const size_t size = vn_dtype_size(k->dtype), width = k->add ? sizeof(double) : size;
	const int    last = k->rank - 1;
	if (axis == k->rank) {
		if (k->add)
			add_run((double *)(void *)to, 1, from, 1, 1, k->dtype);
		else
			memcpy(to, from, size);
	} else if (axis == last && k->add) {
		add_run((double *)(void *)to, k->axis[axis].to, from, k->axis[axis].from, count, k->dtype);
	} else if (axis == last) {
		copy_run(to, k->axis[axis].to, from, k->axis[axis].from, count, size);
	} else {
		for (int64_t i = 0; i < count; i++)
			scatter_elements(k, axis + 1, k->axis[axis + 1].size, to + (size_t)(i * k->axis[axis].to) * width,
			                 from + (size_t)(i * k->axis[axis].from) * size);
	}
}

/* ---- the nest ---------------------------------------------------------------------------- */

/* Drops axes of length 1, sorts the others by descending stride in the source, and joins axes
 * contiguous in both. */
static void simplify_nest(nest *k)
{
	nest_axis *x = k->axis;
	int        n = 0;
	for (int i = 0; i < k->rank; i++)
		if (x[i].size != 1)
			x[n++] = x[i];
	k->rank = n;
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && x[j].from > x[j - 1].from; j--) {
			const nest_axis outer = x[j];
			x[j] = x[j - 1];
			x[j - 1] = outer;
		}
	for (int i = n - 2; i >= 0; i--)
		if (x[i].from == x[i + 1].size * x[i + 1].from && x[i].to == x[i + 1].size * x[i + 1].to) {
			x[i] = (nest_axis) { x[i].size * x[i + 1].size, x[i + 1].from, x[i + 1].to };
			for (int j = i + 1; j + 1 < k->rank; j++)
				x[j] = x[j + 1];
			k->rank--;
		}
}

/* `count` indices of `axis` with all inner axes: `length` elements of the source from `at` on. */
typedef struct stretch {
	int     axis;
	int64_t count, at, length;
} stretch;

static vn_status read_stretch(entry_numbers x, const nest *k, const stretch *s, unsigned char *to, vn_error *err)
{
	unsigned char    room[STRETCH_BYTES];
	const nest_axis *a = &k->axis[s->axis];
	if (!k->add && s->axis >= k->rank - 1 && (s->axis == k->rank || (a->from == 1 && a->to == 1)))
		return read_flat(x, s->at, s->length, to, err);
	const vn_status st = read_flat(x, s->at, s->length, room, err);
	if (!st)
		scatter_elements(k, s->axis, s->count, to, room);
	return st;
}

/* Runs the nest over a source, whose first element is at `at`. */
static vn_status pull_elements(entry_numbers x, nest *k, int64_t at, unsigned char *to, vn_error *err)
{
	const int64_t room = (int64_t)(STRETCH_BYTES / vn_dtype_size(k->dtype)),
				  gap = (int64_t)(GAP_BYTES / vn_dtype_size(k->dtype));
	const size_t width = k->add ? sizeof(double) : vn_dtype_size(k->dtype);
	int64_t      length[VN_MAX_RANK + 1], index[VN_MAX_RANK] = { 0 }; /* length: source elements an axis spans */
	int          axis;
	vn_status    st = VN_OK;

	for (int a = 0; a < k->rank; a++)
		if (k->axis[a].size == 0)
			return VN_OK;
	simplify_nest(k);
	length[k->rank] = 1;
	for (axis = k->rank; axis > 0 && length[axis] <= room && k->axis[axis - 1].from - length[axis] <= gap; axis--)
		length[axis - 1] = length[axis] + (k->axis[axis - 1].size - 1) * k->axis[axis - 1].from;
	const int64_t all = axis < k->rank ? k->axis[axis].size : 1, inner = axis < k->rank ? length[axis + 1] : 1;
	const bool    straight = !k->add && axis == k->rank - 1 && k->axis[axis].from == 1 &&
	                      k->axis[axis].to == 1; /* needs no room */
	const int64_t most = straight || axis == k->rank ? all : 1 + (room - inner) / k->axis[axis].from;
	for (bool more = true; more && !st;) {
		int64_t source = at, result = 0;
		for (int a = 0; a < axis; a++) {
			source += index[a] * k->axis[a].from;
			result += index[a] * k->axis[a].to;
		}
		for (int64_t j = 0; j < all && !st; j += most) {
			const int64_t count = all - j < most ? all - j : most, step = axis < k->rank ? k->axis[axis].from : 0,
						  to_step = axis < k->rank ? k->axis[axis].to : 0;
			st = read_stretch(x, k, &(stretch) { axis, count, source + j * step, inner + (count - 1) * step },
			                  to + (size_t)(result + j * to_step) * width, err);
		}
		more = false;
		for (int a = axis - 1; a >= 0 && !more; a--) {
			more = ++index[a] < k->axis[a].size;
			index[a] = more ? index[a] : 0;
		}
	}
	return st;
}

/* ---- parts of a tensor --------------------------------------------------------------------- */

static nest dense_nest(const vn_region *box, int rank, vn_dtype dtype)
{
	nest    k = { .rank = rank, .dtype = dtype };
	int64_t step = 1;
	for (int a = rank - 1; a >= 0; a--) {
		k.axis[a].size = box->size[a];
		k.axis[a].to = step;
		step *= box->size[a];
	}
	return k;
}

/* The shape as stored, not as viewed. */
static const vn_shape *own_shape(const vn_recording *r, int i)
{
	return r->source[i].view ? &r->source[i].view->whole : &r->entry[i].shape;
}

/* Reads a box of a tensor made of pieces. to: zeroed doubles when the pieces are added. */
static vn_status read_pieces(vn_recording *r, int i, const vn_region *box, unsigned char *to, vn_error *err)
{
	const vn_gathered *g = r->source[i].gathered;
	const bool         add = g->how == VN_JOIN_SUMMED;
	const size_t       width = add ? sizeof(double) : vn_dtype_size(r->entry[i].dtype);
	vn_status          st = VN_OK;
	for (int n = 0; n < g->n && !st; n++) {
		const vn_piece *p = &g->piece[n];
		vn_recording   *base = r->base[p->base];
		nest            k = dense_nest(box, own_shape(r, i)->rank, base->entry[p->entry].dtype);
		int64_t         at = p->from, result = 0;
		bool            any = true;
		k.add = add;
		for (int a = 0; a < k.rank; a++) {
			const int64_t end = p->to[a] + p->size[a], last = box->from[a] + box->size[a];
			const int64_t low = p->to[a] > box->from[a] ? p->to[a] : box->from[a], high = end < last ? end : last;
			any = any && low < high;
			k.axis[a].from = p->stride[a];
			k.axis[a].size = high - low;
			at += (low - p->to[a]) * p->stride[a];
			result += (low - box->from[a]) * k.axis[a].to;
		}
		if (any)
			st = pull_elements((entry_numbers) { base, p->entry, false }, &k, at, to + (size_t)result * width, err);
	}
	return st;
}

/* Sums in double: ranks may add in any order, and our rounding must not count as theirs. */
static vn_status read_sums(vn_recording *r, int i, const vn_region *box, void *to, vn_error *err)
{
	const size_t n = (size_t)vn_region_count(box, own_shape(r, i)->rank);
	double      *x = calloc(n ? n : 1, sizeof *x);
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory to add %zu numbers", r->path, n);
	const vn_status st = read_pieces(r, i, box, (unsigned char *)x, err);
	if (!st)
		vn_from_f64(to, r->entry[i].dtype, x, n);
	free(x);
	return st;
}

static vn_status read_box(entry_numbers x, const vn_region *box, void *to, vn_error *err)
{
	vn_recording          *r = x.r;
	const int              i = vn_recording_primary(r, x.i);
	const vn_entry_source *s = &r->source[i];
	const vn_gathered     *g = s->gathered;
	const vn_view         *v = x.own ? NULL : s->view;
	const vn_shape        *whole = own_shape(r, i);
	nest                   k = dense_nest(box, whole->rank, r->entry[i].dtype);
	int64_t                stride[VN_MAX_RANK], step = 1, at = 0;

	if (!v && g && g->whole)
		return read_box((entry_numbers) { r->base[g->base], g->entry, false }, box, to, err);
	if (!v && g)
		return g->how == VN_JOIN_SUMMED ? read_sums(r, i, box, to, err) : read_pieces(r, i, box, to, err);
	for (int a = whole->rank - 1; a >= 0; a--) {
		stride[a] = step;
		step *= whole->dim[a];
	}
	for (int a = 0; a < whole->rank; a++) {
		k.axis[a].from = stride[v ? v->order[a] : a];
		at += (box->from[a] + (v ? v->from[a] : 0)) * k.axis[a].from;
	}
	return pull_elements((entry_numbers) { r, i, true }, &k, at, to, err);
}

/* A run of elements that is read as a few boxes. */
typedef struct boxes {
	entry_numbers   of;
	const vn_shape *shape;
	vn_region       box; /* the next; its axes so far are set */
	unsigned char  *out;
} boxes;

/* Reads the axes from `axis` on, elements [from, to) of them. */
static vn_status read_boxes(boxes *b, int axis, int64_t from, int64_t to, vn_error *err)
{
	const vn_shape *shape = b->shape;
	int64_t         inner = 1;
	vn_status       st = VN_OK;
	if (axis == shape->rank || axis == VN_MAX_RANK) { /* gcc 13 does not know that the rank is no greater */
		st = read_box(b->of, &b->box, b->out, err);
		b->out += (size_t)vn_region_count(&b->box, shape->rank) * vn_dtype_size(b->of.r->entry[b->of.i].dtype);
		return st;
	}
	for (int a = axis + 1; a < shape->rank && a < VN_MAX_RANK; a++)
		inner *= shape->dim[a];
	while (from < to && !st) {
		const int64_t rest = from % inner, rows = (to - from) / inner;
		b->box.from[axis] = from / inner;
		if (rest == 0 && rows > 0) { /* complete rows in one box */
			b->box.size[axis] = rows;
			st = read_boxes(b, axis + 1, 0, inner, err);
			from += rows * inner;
		} else { /* a part of one row */
			const int64_t end = rest + to - from < inner ? rest + to - from : inner;
			b->box.size[axis] = 1;
			st = read_boxes(b, axis + 1, rest, end, err);
			from += end - rest;
		}
	}
	return st;
}

static vn_status read_flat(entry_numbers x, int64_t from, int64_t n, void *to, vn_error *err)
{
	vn_recording          *r = x.r;
	const int              i = vn_recording_primary(r, x.i);
	const vn_entry_source *s = &r->source[i];
	const bool             stored = x.own || !s->view;
	const size_t           size = vn_dtype_size(r->entry[i].dtype), at = (size_t)from * size, bytes = (size_t)n * size;
	const void            *data;
	vn_status              st;

	if (n == 0)
		return VN_OK;
	if (stored && s->offset >= 0) {
		st = vn_proof_ask(r, i, err);
		return st ? st : vn_recording_bytes(r, i, (vn_file_part) { r->fd, s->offset + (int64_t)at, bytes }, to, err);
	}
	if (stored && s->foreign && s->parts)
		return r->foreign.read(r->foreign.context, s->foreign - 1, at, bytes, to, err);
	if (stored && !s->gathered) { /* compressed, chunked, big-endian */
		st = vn_recording_load(r, i, &data, err);
		if (!st && s->loaded.file)
			return vn_recording_bytes(r, i, (vn_file_part) { s->loaded.file, (int64_t)at, bytes }, to, err);
		if (!st)
			memcpy(to, (const unsigned char *)data + at, bytes);
		return st;
	}
	if (stored && s->gathered->whole)
		return read_flat((entry_numbers) { r->base[s->gathered->base], s->gathered->entry, false }, from, n, to, err);
	boxes b = { .of = { r, i, x.own }, .shape = x.own ? own_shape(r, i) : &r->entry[i].shape, .out = to };
	return read_boxes(&b, 0, from, from + n, err);
}

vn_status vn_recording_read_region(vn_recording *r, int i, const vn_region *box, void *to, vn_error *err)
{
	return read_box((entry_numbers) { r, i, false }, box, to, err);
}

vn_status vn_recording_read(vn_recording *r, int i, int64_t from, int64_t n, void *to, vn_error *err)
{
	return read_flat((entry_numbers) { r, i, false }, from, n, to, err);
}

bool vn_recording_mapped(const vn_recording *r, int i)
{
	const vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	if (s->view)
		return false;
	return s->gathered ? s->gathered->whole && vn_recording_mapped(r->base[s->gathered->base], s->gathered->entry)
	                   : s->offset >= 0 || s->bytes >= VN_SCRATCH_FILE;
}
