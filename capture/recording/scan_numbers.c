/* scan_numbers.c: reads the numbers of tensors, in a child; see scan.h.
 *
 * They are read in boxes. A box consists of whole chunks and fits into memory. If a single chunk is
 * too large for that, HDF5 keeps it while boxes of it are read. So no chunk is decompressed twice,
 * however chunks lie in the tensor, and no more than one box stays in memory.
 */
#include "capture/recording/scan.h"
#include "capture/recording/scan_read.h"

#include "capture/file/child.h"

/* BOX_BYTES: most bytes of a box. KEPT_BYTES: HDF5's default chunk cache. */
enum { BOX_BYTES = 16 << 20, KEPT_BYTES = 1 << 20 };

typedef struct tensor_reading {
	vn_scan           *s;
	const vn_scan_one *tensor;
	vn_scratch         to; /* its slot */
	int                children;
	hid_t              file, dset, space, type;
	int                rank;
	hsize_t            dim[VN_MAX_RANK], chunk[VN_MAX_RANK]; /* chunk: all ones without chunks */
	hsize_t            width;
	int                boxes; /* number of boxes of whole chunks so far */
} tensor_reading;

typedef struct chunk_box {
	hsize_t from[VN_MAX_RANK], size[VN_MAX_RANK];
} chunk_box;

static void open_tensor(tensor_reading *x, size_t cache)
{
	if (x->file <= 0)
		x->file = vn_scan_open(x->s, cache);
	x->dset = H5Oopen_by_addr(x->file, (haddr_t)x->tensor->address);
	x->type = vn_h5_type(x->tensor->dtype, false);
	if (x->dset < 0 || H5Iget_type(x->dset) != H5I_DATASET || x->type < 0 || (x->space = H5Dget_space(x->dset)) < 0)
		vn_refuse(x->s, x->tensor->name, "it cannot be opened again");
}

static void close_tensor(const tensor_reading *x)
{
	H5Sclose(x->space);
	H5Dclose(x->dset);
	H5Tclose(x->type);
}

/* Makes HDF5's cache large enough for one chunk. The child's process never closes the file. */
static void prepare_reading(tensor_reading *x)
{
	vn_extent e;
	hsize_t   bytes;
	open_tensor(x, 0);
	e = vn_scan_extent(x->s, x->dset, x->type, x->tensor->name);
	const hid_t how = H5Dget_create_plist(x->dset);
	x->rank = e.rank;
	bytes = x->width = (hsize_t)e.width;
	for (int a = 0; a < e.rank; a++) {
		x->dim[a] = (hsize_t)e.dim[a];
		x->chunk[a] = 1;
	}
	if (e.count * (int64_t)e.width != (int64_t)x->to.bytes)
		vn_refuse(x->s, x->tensor->name, "it cannot be opened again");
	if (how < 0 || (H5Pget_layout(how) == H5D_CHUNKED && H5Pget_chunk(how, e.rank, x->chunk) != e.rank))
		vn_refuse(x->s, x->tensor->name, "its layout cannot be read");
	for (int a = 0; a < e.rank; a++)
		bytes *= x->chunk[a];
	H5Pclose(how);
	if (bytes <= KEPT_BYTES)
		return;
	if (bytes > BOX_BYTES) /* one such chunk at a time uses enough memory */
		x->children = 1;
	close_tensor(x);
	H5Fclose(x->file);
	x->file = 0;
	open_tensor(x, bytes);
}

/* Bytes of the memory that a box touches: each stretch is rounded up to pages. */
static hsize_t count_touched(const tensor_reading *x, const chunk_box *b)
{
	const hsize_t page = 4096;
	hsize_t       run = x->width, step = x->width, span = x->width, runs = 1;
	bool          whole = true;
	for (int a = x->rank - 1; a >= 0; a--) {
		if (whole)
			run *= b->size[a];
		else
			runs *= b->size[a];
		whole = whole && b->size[a] == x->dim[a];
		span += (b->size[a] - 1) * step;
		step *= x->dim[a];
	}
	const hsize_t apart = runs * (run + (runs > 1 ? page : 0));
	return apart < span ? apart : span;
}

/* Where to split a box: between two chunks, or anywhere inside one. Returns false when it
 * cannot be split. */
static bool cut_box(const tensor_reading *x, const chunk_box *b, int *axis, hsize_t *at, bool *between)
{
	for (int a = 0; a < x->rank; a++) {
		const hsize_t chunks = (b->size[a] + x->chunk[a] - 1) / x->chunk[a];
		if (chunks > 1) {
			*axis = a;
			*at = chunks / 2 * x->chunk[a];
			return *between = true;
		}
	}
	*between = false;
	for (*axis = 0; *axis < x->rank && b->size[*axis] == 1; ++*axis)
		;
	if (*axis < x->rank)
		*at = b->size[*axis] / 2;
	return *axis < x->rank;
}

/* inside: one chunk of our own holds the whole box. */
static void read_box(tensor_reading *x, const chunk_box *b, bool inside)
{
	chunk_box half[2] = { *b, *b };
	int       axis;
	hsize_t   at;
	bool      between, more = count_touched(x, b) > BOX_BYTES && cut_box(x, b, &axis, &at, &between);

	if (!inside && !(more && between) && x->boxes++ % x->children != x->s->child)
		return;
	if (more) {
		half[0].size[axis] = at;
		half[1].from[axis] += at;
		half[1].size[axis] -= at;
		read_box(x, &half[0], inside || !between);
		read_box(x, &half[1], inside || !between);
		return;
	}
	if (H5Sselect_hyperslab(x->space, H5S_SELECT_SET, b->from, NULL, b->size, NULL) < 0 ||
	    H5Dread(x->dset, x->type, x->space, x->space, H5P_DEFAULT, x->to.data) < 0)
		vn_refuse(x->s, x->tensor->name, "its numbers cannot be read");
	vn_scratch_forget(&x->to);
}

static void read_tensor(tensor_reading *x)
{
	chunk_box all = { .from = { 0 } };
	prepare_reading(x);
	for (int a = 0; a < x->rank; a++)
		all.size[a] = x->dim[a];
	if (x->rank == 0 && H5Dread(x->dset, x->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, x->to.data) < 0)
		vn_refuse(x->s, x->tensor->name, "its numbers cannot be read");
	if (x->rank > 0)
		read_box(x, &all, false);
}

/* The slowest supported filter decodes more than 20 MB a second. */
static void take_time(size_t bytes)
{
	const size_t slowest = bytes / 20000000;
	vn_child_patience(10 + (int)(slowest < 100000 ? slowest : 100000));
}

void vn_scan_numbers(void *ctx, int pipe)
{
	vn_scan       *s = ctx;
	tensor_reading x = { .s = s, .to = s->to, .children = s->children };

	s->pipe = pipe;
	take_time(s->to.bytes);
	for (int i = 0; i < s->n; i++) {
		x.tensor = &s->tensor[i];
		x.to.bytes = x.tensor->bytes;
		read_tensor(&x);
		close_tensor(&x);
		x.to.data = (unsigned char *)x.to.data + vn_scan_span(x.tensor->bytes);
	}
	vn_child_send(pipe, VN_FRAME_DONE, "", 0);
}
