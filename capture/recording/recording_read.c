/* recording_read.c: reads a part of a tensor, wherever its numbers are; see vn_recording_read.
 *
 * Whatever is between a tensor and its file (another order of axes, pieces of several tensors)
 * becomes nested loops over a source. They read the source in stretches, with its axes in their own
 * order, so that a stretch is as long as possible. A request to the source is again for a part of a
 * tensor, until the source is a file.
 */
#include "capture/recording/recording_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* STRETCH_BYTES: most bytes read in one call. GAP_BYTES: the largest gap between two numbers read
 * in one call; reading it costs no more than another call. */
enum { STRETCH_BYTES = 64 << 10, GAP_BYTES = 4096 };

/* Nested loops over `rank` axes: their sizes, and their strides in the source and in the
 * result, in elements. */
typedef struct nest {
	int      rank;
	int64_t  size[VN_MAX_RANK], from[VN_MAX_RANK], to[VN_MAX_RANK];
	vn_dtype dtype; /* of the source */
	bool     add;   /* adds to the doubles of the result; otherwise copies, and the result has the source's dtype */
} nest;

static vn_status read_flat(vn_recording *r, int i, bool own, int64_t from, int64_t n, void *to, vn_error *err);

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
		add_run((double *)(void *)to, k->to[axis], from, k->from[axis], count, k->dtype);
	} else if (axis == last) {
		copy_run(to, k->to[axis], from, k->from[axis], count, size);
	} else {
		for (int64_t i = 0; i < count; i++)
			scatter_elements(k, axis + 1, k->size[axis + 1], to + (size_t)(i * k->to[axis]) * width,
			                 from + (size_t)(i * k->from[axis]) * size);
	}
}

/* ---- the nest ---------------------------------------------------------------------------- */

/* Drops axes of length 1, sorts the others by descending stride in the source, and joins axes
 * contiguous in both. */
static void simplify_nest(nest *k)
{
	int n = 0;
	for (int i = 0; i < k->rank; i++)
		if (k->size[i] != 1) {
			k->size[n] = k->size[i];
			k->from[n] = k->from[i];
			k->to[n++] = k->to[i];
		}
	k->rank = n;
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && k->from[j] > k->from[j - 1]; j--) {
			const int64_t size = k->size[j], from = k->from[j], to = k->to[j];
			k->size[j] = k->size[j - 1], k->from[j] = k->from[j - 1], k->to[j] = k->to[j - 1];
			k->size[j - 1] = size, k->from[j - 1] = from, k->to[j - 1] = to;
		}
	for (int i = n - 2; i >= 0; i--)
		if (k->from[i] == k->size[i + 1] * k->from[i + 1] && k->to[i] == k->size[i + 1] * k->to[i + 1]) {
			k->size[i] *= k->size[i + 1];
			k->from[i] = k->from[i + 1];
			k->to[i] = k->to[i + 1];
			for (int j = i + 1; j + 1 < k->rank; j++)
				k->size[j] = k->size[j + 1], k->from[j] = k->from[j + 1], k->to[j] = k->to[j + 1];
			k->rank--;
		}
}

/* Reads one stretch: `count` indices of `axis` with all inner axes, `length` elements of
 * source i from `at` on. */
static vn_status read_stretch(vn_recording *r, int i, bool own, const nest *k, int axis, int64_t count, int64_t at,
                              int64_t length, unsigned char *to, vn_error *err)
{
	unsigned char room[STRETCH_BYTES];
	if (!k->add && axis >= k->rank - 1 && (axis == k->rank || (k->from[axis] == 1 && k->to[axis] == 1)))
		return read_flat(r, i, own, at, length, to, err);
	const vn_status st = read_flat(r, i, own, at, length, room, err);
	if (!st)
		scatter_elements(k, axis, count, to, room);
	return st;
}

/* Runs the nest over source i of r, whose first element is at `at`. own: as stored,
 * not through the view. */
static vn_status pull_elements(vn_recording *r, int i, bool own, nest *k, int64_t at, unsigned char *to, vn_error *err)
{
	const int64_t room = (int64_t)(STRETCH_BYTES / vn_dtype_size(k->dtype)),
				  gap = (int64_t)(GAP_BYTES / vn_dtype_size(k->dtype));
	const size_t width = k->add ? sizeof(double) : vn_dtype_size(k->dtype);
	int64_t      length[VN_MAX_RANK + 1], index[VN_MAX_RANK] = { 0 }; /* length: source elements an axis spans */
	int          axis;
	vn_status    st = VN_OK;

	for (int a = 0; a < k->rank; a++)
		if (k->size[a] == 0)
			return VN_OK;
	simplify_nest(k);
	length[k->rank] = 1;
	for (axis = k->rank; axis > 0 && length[axis] <= room && k->from[axis - 1] - length[axis] <= gap; axis--)
		length[axis - 1] = length[axis] + (k->size[axis - 1] - 1) * k->from[axis - 1];
	const int64_t all = axis < k->rank ? k->size[axis] : 1, inner = axis < k->rank ? length[axis + 1] : 1;
	const bool straight = !k->add && axis == k->rank - 1 && k->from[axis] == 1 && k->to[axis] == 1; /* needs no room */
	const int64_t most = straight || axis == k->rank ? all : 1 + (room - inner) / k->from[axis];
	for (bool more = true; more && !st;) {
		int64_t source = at, result = 0;
		for (int a = 0; a < axis; a++) {
			source += index[a] * k->from[a];
			result += index[a] * k->to[a];
		}
		for (int64_t j = 0; j < all && !st; j += most) {
			const int64_t count = all - j < most ? all - j : most, step = axis < k->rank ? k->from[axis] : 0,
						  to_step = axis < k->rank ? k->to[axis] : 0;
			st = read_stretch(r, i, own, k, axis, count, source + j * step, inner + (count - 1) * step,
			                  to + (size_t)(result + j * to_step) * width, err);
		}
		more = false;
		for (int a = axis - 1; a >= 0 && !more; a--) {
			more = ++index[a] < k->size[a];
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
		k.size[a] = box->size[a];
		k.to[a] = step;
		step *= box->size[a];
	}
	return k;
}

/* Reads a box of a tensor made of pieces. to: zeroed doubles when the pieces are added. */
static vn_status read_pieces(vn_recording *r, const vn_gathered *g, const vn_region *box, unsigned char *to,
                             vn_error *err)
{
	const size_t width = g->how == VN_JOIN_SUMMED ? sizeof(double) : vn_dtype_size(g->dtype);
	vn_status    st = VN_OK;
	for (int i = 0; i < g->n && !st; i++) {
		const vn_piece *p = &g->piece[i];
		vn_recording   *base = r->base[p->base];
		nest            k = dense_nest(box, g->shape.rank, base->entry[p->entry].dtype);
		int64_t         at = p->from, result = 0;
		bool            any = true;
		k.add = g->how == VN_JOIN_SUMMED;
		for (int a = 0; a < k.rank; a++) {
			const int64_t end = p->to[a] + p->size[a], last = box->from[a] + box->size[a];
			const int64_t low = p->to[a] > box->from[a] ? p->to[a] : box->from[a], high = end < last ? end : last;
			any = any && low < high;
			k.from[a] = p->stride[a];
			k.size[a] = high - low;
			at += (low - p->to[a]) * p->stride[a];
			result += (low - box->from[a]) * k.to[a];
		}
		if (any)
			st = pull_elements(base, p->entry, false, &k, at, to + (size_t)result * width, err);
	}
	return st;
}

/* Sums in double: ranks may add in any order, and our rounding must not count as theirs. */
static vn_status read_sums(vn_recording *r, const vn_gathered *g, const vn_region *box, void *to, vn_error *err)
{
	const size_t n = (size_t)vn_region_count(box, g->shape.rank);
	double      *x = calloc(n ? n : 1, sizeof *x);
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory to add %zu numbers", r->path, n);
	const vn_status st = read_pieces(r, g, box, (unsigned char *)x, err);
	if (!st)
		vn_from_f64(to, g->dtype, x, n);
	free(x);
	return st;
}

int64_t vn_region_count(const vn_region *box, int rank)
{
	int64_t n = 1;
	for (int a = 0; a < rank; a++)
		n *= box->size[a];
	return n;
}

vn_status vn_gathered_region(vn_recording *r, const vn_gathered *g, const vn_region *box, void *to, vn_error *err)
{
	return g->how == VN_JOIN_SUMMED ? read_sums(r, g, box, to, err) : read_pieces(r, g, box, to, err);
}

/* Reads elements [from, from + n) of entry i, which begins at `at` in its file or in scratch. */
static vn_status from_file(const vn_recording *r, int i, int fd, int64_t at, int64_t from, int64_t n, void *to,
                           vn_error *err)
{
	const int64_t size = (int64_t)vn_dtype_size(r->entry[i].dtype);
	return vn_recording_bytes(r, i, fd, at + from * size, (size_t)(n * size), to, err);
}

/* The shape as stored, not as viewed. */
static const vn_shape *own_shape(const vn_recording *r, int i)
{
	return r->source[i].view ? &r->source[i].view->whole : &r->entry[i].shape;
}

static vn_status own_box(vn_recording *r, int i, const vn_region *box, void *to, vn_error *err)
{
	const vn_entry_source *s = &r->source[i];
	const vn_shape        *whole = own_shape(r, i);
	if (s->gathered && s->gathered->whole)
		return vn_recording_read_region(r->base[s->gathered->base], s->gathered->entry, box, to, err);
	if (s->gathered)
		return vn_gathered_region(r, s->gathered, box, to, err);
	nest    k = dense_nest(box, whole->rank, r->entry[i].dtype);
	int64_t step = 1, at = 0;
	for (int a = whole->rank - 1; a >= 0; a--) {
		k.from[a] = step;
		at += box->from[a] * step;
		step *= whole->dim[a];
	}
	return pull_elements(r, i, true, &k, at, to, err);
}

/* Reads a run of elements as a few boxes: the axes from `axis` on, elements [from, to) of them. */
static vn_status run_of_boxes(vn_recording *r, int i, bool own, const vn_shape *shape, int axis, int64_t from,
                              int64_t to, vn_region *box, unsigned char **out, vn_error *err)
{
	int64_t   inner = 1;
	vn_status st = VN_OK;
	if (axis == shape->rank) {
		st = own ? own_box(r, i, box, *out, err) : vn_recording_read_region(r, i, box, *out, err);
		*out += (size_t)vn_region_count(box, shape->rank) * vn_dtype_size(r->entry[i].dtype);
		return st;
	}
	for (int a = axis + 1; a < shape->rank; a++) {
		inner *= shape->dim[a];
		box->from[a] = 0;
		box->size[a] = shape->dim[a];
	}
	while (from < to && !st) {
		const int64_t index = from / inner, rest = from % inner;
		box->from[axis] = index;
		if (rest == 0 && to - from >= inner) {
			box->size[axis] = (to - from) / inner;
			from += box->size[axis] * inner;
			st = run_of_boxes(r, i, own, shape, shape->rank, 0, 0, box, out, err);
			continue;
		}
		const int64_t end = to < (index + 1) * inner ? to : (index + 1) * inner;
		box->size[axis] = 1;
		st = run_of_boxes(r, i, own, shape, axis + 1, rest, rest + end - from, box, out, err);
		for (int a = axis + 1; a < shape->rank; a++) {
			box->from[a] = 0;
			box->size[a] = shape->dim[a];
		}
		from = end;
	}
	return st;
}

static vn_status read_flat(vn_recording *r, int i, bool own, int64_t from, int64_t n, void *to, vn_error *err)
{
	const vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	if (n == 0)
		return VN_OK;
	if (own || !s->view) {
		if (s->offset >= 0) {
			const vn_status st = vn_proof_ask(r, i, err);
			return st ? st : from_file(r, i, r->fd, s->offset, from, n, to, err);
		}
		if (s->foreign && s->parts) {
			const size_t size = vn_dtype_size(r->entry[i].dtype);
			return r->foreign.read(r->foreign.context, s->foreign - 1, (size_t)from * size, (size_t)n * size, to, err);
		}
		if (!s->gathered) { /* compressed, chunked, big-endian */
			const void     *data;
			const vn_status st = vn_recording_load(r, i, &data, err);
			if (!st && s->loaded.file)
				return from_file(r, i, s->loaded.file, 0, from, n, to, err);
			if (!st)
				memcpy(to, (const unsigned char *)data + (size_t)from * vn_dtype_size(r->entry[i].dtype),
				       (size_t)n * vn_dtype_size(r->entry[i].dtype));
			return st;
		}
		if (s->gathered->whole)
			return read_flat(r->base[s->gathered->base], s->gathered->entry, false, from, n, to, err);
	}
	vn_region      box;
	unsigned char *out = to;
	return run_of_boxes(r, i, own, own ? own_shape(r, i) : &r->entry[i].shape, 0, from, from + n, &box, &out, err);
}

vn_status vn_recording_read_region(vn_recording *r, int i, const vn_region *box, void *to, vn_error *err)
{
	const vn_view *v = r->source[i = vn_recording_primary(r, i)].view;
	if (!v)
		return own_box(r, i, box, to, err);
	nest    k = dense_nest(box, v->shape.rank, r->entry[i].dtype);
	int64_t stride[VN_MAX_RANK], step = 1, at = 0;
	for (int a = v->whole.rank - 1; a >= 0; a--) {
		stride[a] = step;
		step *= v->whole.dim[a];
	}
	for (int a = 0; a < k.rank; a++) {
		k.from[a] = stride[v->order[a]];
		at += (v->from[a] + box->from[a]) * k.from[a];
	}
	return pull_elements(r, i, true, &k, at, to, err);
}

vn_status vn_recording_read(vn_recording *r, int i, int64_t from, int64_t n, void *to, vn_error *err)
{
	return read_flat(r, i, false, from, n, to, err);
}

bool vn_recording_mapped(const vn_recording *r, int i)
{
	const vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	if (s->view)
		return false;
	return s->gathered ? s->gathered->whole && vn_recording_mapped(r->base[s->gathered->base], s->gathered->entry)
	                   : s->offset >= 0 || s->bytes >= VN_SCRATCH_FILE;
}
