/* edit_tensor.c: changes the numbers, the shape and the storage of a tensor; see edit.h. */
#include "capture/edit/edit_internal.h"

#include "libref/base/digest.h"
#include "libref/base/stats.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const vn_tensor *t)
{
	return (size_t)vn_shape_count(&t->shape) * vn_dtype_size(t->dtype);
}

static void put_real(hid_t o, const char *key, double x, bool *good)
{
	*good = *good && (H5Aexists(o, key) <= 0 || H5Adelete(o, key) >= 0) && vn_h5_put_real(o, key, x);
}

/* Writes the attributes an engine would write for these numbers. */
static bool write_statistics(hid_t o, const vn_tensor *t)
{
	const vn_stats  s = vn_stats_of(t->data, t->dtype, (size_t)vn_shape_count(&t->shape));
	const vn_digest d = vn_digest_of(t->data, bytes_of(t));
	bool            good = true;

	put_real(o, "min", s.min, &good);
	put_real(o, "max", s.max, &good);
	put_real(o, "mean", s.mean, &good);
	put_real(o, "rms", s.rms, &good);
	put_real(o, "absmax", s.absmax, &good);
	return good && (H5Aexists(o, "nan") <= 0 || H5Adelete(o, "nan") >= 0) && vn_h5_put_int(o, "nan", s.nan) &&
	       (H5Aexists(o, "inf") <= 0 || H5Adelete(o, "inf") >= 0) && vn_h5_put_int(o, "inf", s.inf) &&
	       (H5Aexists(o, "digest") <= 0 || H5Adelete(o, "digest") >= 0) && vn_h5_put_text(o, "digest", d.hex);
}

void vn_edit_numbers(vn_edit *e, const char *object, const vn_tensor *t, bool honest)
{
	hid_t o = e->failed ? H5I_INVALID_HID : H5Dopen2(e->file, object, H5P_DEFAULT), type = vn_h5_type(t->dtype, false);

	vn_edit_settle(e,
	               o >= 0 && type >= 0 && H5Dwrite(o, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->data) >= 0 &&
	                   (!honest || write_statistics(o, t)),
	               object);
}

/* ---- another dataset under the name --------------------------------------------- */

static herr_t copy_attribute(hid_t from, const char *key, const H5A_info_t *info, void *ctx)
{
	const hid_t to = *(hid_t *)ctx;
	hid_t       a = H5Aopen(from, key, H5P_DEFAULT), type = H5Aget_type(a), space = H5Aget_space(a);
	hid_t       b = H5Acreate2(to, key, type, space, H5P_DEFAULT, H5P_DEFAULT);
	void       *value = calloc(1, H5Tget_size(type) + 1);
	bool        good = b >= 0 && value && H5Aread(a, type, value) >= 0 && H5Awrite(b, type, value) >= 0;

	(void)info;
	free(value);
	if (b >= 0)
		H5Aclose(b);
	H5Sclose(space);
	H5Tclose(type);
	H5Aclose(a);
	return good ? 0 : -1;
}

static bool set_layout(hid_t dcpl, vn_edit_way way, int rank, const hsize_t *dim, size_t bytes)
{
	hsize_t chunk[VN_MAX_RANK + 1];

	memcpy(chunk, dim, (size_t)rank * sizeof *dim);
	switch (way) {
	case VN_EDIT_UNWRITTEN: return H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_LATE) >= 0;
	case VN_EDIT_ELSEWHERE: return H5Pset_external(dcpl, "elsewhere.bin", 0, bytes) >= 0;
	case VN_EDIT_GAP:
	case VN_EDIT_PACKED_GAP:
		chunk[0] = 1;
		return H5Pset_chunk(dcpl, rank, chunk) >= 0 && (way == VN_EDIT_GAP || H5Pset_deflate(dcpl, 1) >= 0);
	case VN_EDIT_ROTTEN:
		return H5Pset_chunk(dcpl, rank, chunk) >= 0 && H5Pset_deflate(dcpl, 1) >= 0 && H5Pset_fletcher32(dcpl) >= 0;
	default: return true;
	}
}

/* All but the last row. */
static bool write_rows(hid_t o, hid_t type, int rank, const hsize_t *dim, const void *data)
{
	hsize_t from[VN_MAX_RANK + 1] = { 0 }, count[VN_MAX_RANK + 1];
	memcpy(count, dim, (size_t)rank * sizeof *dim);
	count[0] = dim[0] - 1;
	hid_t disk = H5Dget_space(o), memory = H5Screate_simple(rank, count, NULL);
	return H5Sselect_hyperslab(disk, H5S_SELECT_SET, from, NULL, count, NULL) >= 0 &&
	       H5Dwrite(o, type, memory, disk, H5P_DEFAULT, data) >= 0;
}

static hid_t create_dataset(vn_edit *e, const vn_tensor *t, vn_edit_way way, int rank, const hsize_t *dim)
{
	hid_t type = way == VN_EDIT_COUNTED ? H5Tcopy(H5T_STD_I16LE) : vn_h5_type(t->dtype, way == VN_EDIT_BIG_ENDIAN);
	hid_t space = rank ? H5Screate_simple(rank, dim, NULL) : H5Screate(H5S_SCALAR);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

	if (way == VN_EDIT_VIRTUAL && H5Pset_virtual(dcpl, space, ".", "/run/token_ids", space) < 0)
		return H5I_INVALID_HID;
	if (!set_layout(dcpl, way, rank, dim, bytes_of(t)))
		return H5I_INVALID_HID;
	return H5Dcreate_anon(e->file, type, space, dcpl, H5P_DEFAULT);
}

static bool write_numbers(vn_edit *e, hid_t o, const vn_tensor *t, vn_edit_way way, int rank, const hsize_t *dim)
{
	hid_t    type = H5Dget_type(o);
	haddr_t  at = 0;
	hsize_t  from[VN_MAX_RANK + 1] = { 0 }, stored = 0;
	unsigned masked = 0;

	switch (way) {
	case VN_EDIT_UNWRITTEN:
	case VN_EDIT_ELSEWHERE:
	case VN_EDIT_VIRTUAL: return true;
	case VN_EDIT_GAP:
	case VN_EDIT_PACKED_GAP: return write_rows(o, type, rank, dim, t->data);
	default:
		if (vn_shape_count(&t->shape) && H5Dwrite(o, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->data) < 0)
			return false;
	}
	if (way == VN_EDIT_PLAIN)
		return write_statistics(o, t);
	if (way != VN_EDIT_ROTTEN)
		return true;
	if (H5Dflush(o) < 0 || H5Dget_chunk_info_by_coord(o, from, &masked, &at, &stored) < 0 || stored < 8)
		return false;
	e->rot = (int64_t)(at + stored / 2);
	return true;
}

static void replace_object(vn_edit *e, const char *object, const vn_tensor *t, vn_edit_way way, int rank,
                           const hsize_t *dim)
{
	hid_t   old = e->failed ? H5I_INVALID_HID : H5Dopen2(e->file, object, H5P_DEFAULT), o = H5I_INVALID_HID;
	hsize_t n = 0;

	bool good = old >= 0 && (o = create_dataset(e, t, way, rank, dim)) >= 0 &&
	            H5Aiterate2(old, H5_INDEX_NAME, H5_ITER_INC, &n, copy_attribute, &o) >= 0 &&
	            write_numbers(e, o, t, way, rank, dim) && H5Ldelete(e->file, object, H5P_DEFAULT) >= 0 &&
	            H5Olink(o, e->file, object, H5P_DEFAULT, H5P_DEFAULT) >= 0;
	if (o >= 0)
		H5Dclose(o);
	vn_edit_settle(e, good, object);
}

void vn_edit_replace(vn_edit *e, const char *object, const vn_tensor *t, vn_edit_way way)
{
	hsize_t dim[VN_MAX_RANK];
	for (int i = 0; i < t->shape.rank; i++)
		dim[i] = (hsize_t)t->shape.dim[i];
	replace_object(e, object, t, way, t->shape.rank, dim);
}

void vn_edit_many_axes(vn_edit *e, const char *object, const vn_tensor *t)
{
	hsize_t dim[VN_MAX_RANK + 1];
	for (int i = 0; i < VN_MAX_RANK; i++)
		dim[i] = 1;
	dim[VN_MAX_RANK] = (hsize_t)vn_shape_count(&t->shape);
	replace_object(e, object, t, VN_EDIT_PLAIN, VN_MAX_RANK + 1, dim);
}
