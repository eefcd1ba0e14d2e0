/* store_tensor.c: tensors into a store: the sink that an engine fills, and the
 * thread that files what comes. See store.h. */
#include "capture/store/store_inside.h"

#include "libref/base/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 64 * 1024 }; /* of a block: what stays in the cache from statistics to digest */

/* Seconds between two states on disk; what a killed process loses at most,
 * beside the tensor at hand. Publishing takes well under a millisecond, with
 * thousands of steps several. */
static const double PUBLISH_EVERY = 0.1;

/* ---- the giver's side -------------------------------------------------------- */

static vn_status take_block(vn_store *s, vn_error *err)
{
	s->filling = vn_queue_take(s->queue);
	return s->filling ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for a block", s->place.partial);
}

static void post_block(vn_store *s)
{
	vn_queue_post(s->queue, s->filling);
	s->filling = NULL;
}

vn_status vn_store_begin(vn_store *s, const vn_tensor_label *l, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_status st = vn_store_status(s, err);

	if (!st && !s->filling)
		st = take_block(s, err);
	if (st)
		return st;
	s->filling->used = 0; /* of a tensor that was never ended */
	s->filling->first = true;
	s->filling->label = *l;
	s->filling->dtype = dtype;
	s->filling->shape = *shape;
	s->left = vn_shape_count(shape);
	s->width = vn_dtype_size(dtype);
	s->open = true;
	return VN_OK;
}

vn_status vn_store_write(vn_store *s, const void *data, size_t elements, vn_error *err)
{
	const char *from = data;
	size_t      bytes = elements * s->width;
	vn_status   st = vn_store_status(s, err);

	if (st)
		return st;
	if (!s->open || (int64_t)elements > s->left)
		return vn_fail(err, VN_ERR_SHAPE, "%s: more numbers than the tensor's shape has", s->place.partial);
	s->left -= (int64_t)elements;
	while (bytes > 0) {
		if (!s->filling && (st = take_block(s, err)))
			return st;
		size_t room = VN_BLOCK_BYTES - s->filling->used, n = bytes < room ? bytes : room;
		memcpy(s->filling->data + s->filling->used, from, n);
		s->filling->used += n;
		from += n;
		bytes -= n;
		/* The last block waits for `end`, which marks it. */
		if (s->filling->used == VN_BLOCK_BYTES && (bytes > 0 || s->left > 0))
			post_block(s);
	}
	return VN_OK;
}

vn_status vn_store_end(vn_store *s, vn_error *err)
{
	vn_status st = vn_store_status(s, err);

	if (!st && (!s->open || s->left != 0))
		st = vn_fail(err, VN_ERR_SHAPE, "%s: %" PRId64 " numbers fewer than the tensor's shape has", s->place.partial,
		             s->left);
	if (!st && !s->filling)
		st = take_block(s, err);
	s->open = false;
	if (st)
		return st;
	s->filling->last = true;
	post_block(s);
	return VN_OK;
}

static vn_status begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	vn_store      *s = ctx;
	const vn_tensor_label l = vn_label_of_value(s->plan, value);
	return vn_store_begin(s, &l, dtype, shape, err);
}

static vn_status write_piece(void *ctx, const void *data, size_t elements, vn_error *err)
{
	return vn_store_write(ctx, data, elements, err);
}

static vn_status end(void *ctx, vn_error *err)
{
	return vn_store_end(ctx, err);
}

vn_sink vn_store_sink(vn_store *s)
{
	return (vn_sink){ .ctx = s, .begin = begin, .write = write_piece, .end = end };
}

/* ---- the storing thread's side ------------------------------------------------ */

static const char *name_of(const vn_store *s)
{
	return s->tensor.label.name;
}

static vn_status broken(vn_store *s, vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot make %s", s->place.partial, name_of(s));
}

/* Forget the tensor at hand; what has no name is gone from the file. */
static void drop(vn_store *s)
{
	if (s->tensor.dset >= 0)
		H5Dclose(s->tensor.dset);
	s->tensor.dset = H5I_INVALID_HID;
	if (s->tensor.digest)
		vn_digester_finish(s->tensor.digest);
	s->tensor.digest = NULL;
}

/* A dataset without a name, its room in the file given at once and not filled. */
static vn_status start(vn_store *s, const vn_block *b, vn_error *err)
{
	hsize_t   dim[VN_MAX_RANK];
	vn_status st = VN_OK;

	drop(s);
	if ((st = vn_h5_room(s->place.partial, err)))
		return st;
	s->tensor.label = b->label;
	s->tensor.dtype = b->dtype;
	s->tensor.sum = (vn_stats_sum){ 0 };
	for (int i = 0; i < b->shape.rank; i++)
		dim[i] = (hsize_t)b->shape.dim[i];

	hid_t space = b->shape.rank ? H5Screate_simple(b->shape.rank, dim, NULL) : H5Screate(H5S_SCALAR);
	hid_t type = vn_h5_type(b->dtype, false);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
	if (space < 0 || type < 0 || dcpl < 0 || H5Pset_layout(dcpl, H5D_CONTIGUOUS) < 0 ||
	    H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY) < 0 || H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) < 0 ||
	    H5Pset_obj_track_times(dcpl, false) < 0 || H5Pset_attr_phase_change(dcpl, 64, 0) < 0 ||
	    (s->tensor.dset = H5Dcreate_anon(s->file, type, space, dcpl, H5P_DEFAULT)) < 0)
		st = broken(s, err);
	if (!st) {
		haddr_t at = H5Dget_offset(s->tensor.dset);
		int64_t bytes = vn_shape_count(&b->shape) * (int64_t)vn_dtype_size(b->dtype);
		s->tensor.at = bytes ? (int64_t)at : 0;
		s->tensor.end = s->tensor.at + bytes;
		if (bytes && at == HADDR_UNDEF)
			st = broken(s, err);
		else if (!(s->tensor.digest = vn_digester_create()))
			st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", s->place.partial);
	}
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (type >= 0)
		H5Tclose(type);
	if (space >= 0)
		H5Sclose(space);
	return st;
}

static vn_status file_numbers(vn_store *s, const vn_block *b, vn_error *err)
{
	const size_t width = vn_dtype_size(s->tensor.dtype);

	if (s->tensor.at + (int64_t)b->used > s->tensor.end)
		return broken(s, err);
	for (size_t i = 0; i < b->used; i += SLICE) {
		size_t n = b->used - i < SLICE ? b->used - i : SLICE;
		vn_stats_add(&s->tensor.sum, b->data + i, s->tensor.dtype, n / width);
		vn_digester_add(s->tensor.digest, b->data + i, n);
	}
	vn_status st = vn_disk_write(&s->disk, name_of(s), b->data, b->used, s->tensor.at, err);
	s->tensor.at += (int64_t)b->used;
	return st;
}

static bool put_word(hid_t o, const char *key, const char *word)
{
	return !*word || vn_h5_put_text(o, key, word);
}

static bool put_attributes(vn_store *s)
{
	const vn_tensor_label *l = &s->tensor.label;
	const vn_stats  t = vn_stats_finish(&s->tensor.sum);
	const vn_digest d = vn_digester_finish(s->tensor.digest);
	const hid_t     o = s->tensor.dset;

	s->tensor.digest = NULL;
	return (l->order < 0 || vn_h5_put_int(o, "order", l->order)) && vn_h5_put_int(o, "layer", l->layer) &&
	       put_word(o, "point", l->point) && put_word(o, "op", l->op) && put_word(o, "basis", l->basis) &&
	       put_word(o, "axes", l->axes) && vn_h5_put_text(o, "digest", d.hex) && vn_h5_put_real(o, "min", t.min) && vn_h5_put_real(o, "max", t.max) &&
	       vn_h5_put_real(o, "mean", t.mean) && vn_h5_put_real(o, "rms", t.rms) &&
	       vn_h5_put_real(o, "absmax", t.absmax) && vn_h5_put_int(o, "nan", t.nan) && vn_h5_put_int(o, "inf", t.inf) &&
	       (!vn_h5_says_dtype(s->tensor.dtype) || vn_h5_put_text(o, "dtype", vn_dtype_name(s->tensor.dtype)));
}

hid_t vn_store_parent(vn_store *s, const char *name, const char **last)
{
	/* Other people's names may have dots, too: "model" and "model.norm" are two tensors, and no group. */
	const char *dot = vn_name_layer(name) >= 0 ? strrchr(name, '.') : NULL;
	char        path[VN_NAME_MAX];

	*last = dot ? dot + 1 : name;
	if (!dot)
		return s->step;
	memcpy(path, name, (size_t)(dot - name));
	path[dot - name] = '\0';
	for (char *p = path; *p; p++)
		if (*p == '.')
			*p = '/';
	if (s->parent >= 0 && strcmp(path, s->parent_name) == 0)
		return s->parent;
	if (s->parent >= 0)
		H5Gclose(s->parent);
	htri_t there = H5Lexists(s->step, path, H5P_DEFAULT);
	s->parent = there > 0 ? H5Gopen2(s->step, path, H5P_DEFAULT)
	                      : H5Gcreate2(s->step, path, H5P_DEFAULT, s->groups, H5P_DEFAULT);
	strcpy(s->parent_name, path);
	return s->parent;
}

vn_status vn_store_publish(vn_store *s, vn_error *err)
{
	if (H5Fflush(s->file, H5F_SCOPE_GLOBAL) < 0)
		return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot flush it", s->place.partial);
	s->published = vn_seconds();
	return vn_driver_publish(s->driver, err);
}

vn_status vn_store_publish_when_due(vn_store *s, vn_error *err)
{
	return vn_seconds() - s->published > PUBLISH_EVERY ? vn_store_publish(s, err) : VN_OK;
}

static vn_status finish(vn_store *s, vn_error *err)
{
	const char *last;
	vn_status   st = vn_h5_room(s->place.partial, err);

	if (st)
		return st;
	if (s->tensor.at != s->tensor.end || !put_attributes(s))
		return broken(s, err);
	hid_t parent = vn_store_parent(s, name_of(s), &last);
	if (parent >= 0 && H5Lexists(parent, last, H5P_DEFAULT) > 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s is given twice in one step", s->place.partial, name_of(s));
	if (parent < 0 || H5Olink(s->tensor.dset, parent, last, H5P_DEFAULT, H5P_DEFAULT) < 0)
		return broken(s, err);
	s->tensors++;
	s->bytes += s->tensor.sum.n * (int64_t)vn_dtype_size(s->tensor.dtype);
	drop(s);
	return vn_store_publish_when_due(s, err);
}

static vn_status file_block(vn_store *s, const vn_block *b, vn_error *err)
{
	vn_status st = VN_OK;

	if (b->first) {
		vn_h5_lock();
		st = start(s, b, err);
		vn_h5_unlock();
	}
	/* A piece of a tensor that was dropped. */
	if (!st && s->tensor.dset < 0)
		return VN_OK;
	if (!st)
		st = file_numbers(s, b, err);
	if (!st && b->last) {
		vn_h5_lock();
		st = finish(s, err);
		vn_h5_unlock();
	}
	return st;
}

void *vn_store_thread(void *store)
{
	vn_store *s = store;
	vn_block *b;

	while ((b = vn_queue_fetch(s->queue))) {
		vn_error err;
		if (!vn_store_status(s, NULL)) {
			vn_status st = file_block(s, b, &err);
			if (st)
				vn_store_failed(s, st, &err);
		}
		vn_queue_give_back(s->queue, b);
	}
	vn_h5_lock();
	drop(s);
	vn_h5_unlock();
	return NULL;
}
