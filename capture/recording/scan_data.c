/* scan_data.c: reads datasets: how they are stored, lists, tables; see
 * scan_read.h. */
#include "capture/recording/scan_read.h"

#include "libref/base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Deflate expands a byte to at most 1032. */
enum { MOST_INFLATION = 1100 };

static void check_filters(const vn_scan *s, hid_t dcpl, const char *object)
{
	int n = H5Pget_nfilters(dcpl);

	for (int i = 0; i < n; i++) {
		unsigned     flags, config;
		size_t       values = 0;
		char         name[64] = "";
		H5Z_filter_t f = H5Pget_filter2(dcpl, (unsigned)i, &flags, &values, NULL, sizeof name, name, &config);
		if (f != H5Z_FILTER_DEFLATE && f != H5Z_FILTER_SHUFFLE && f != H5Z_FILTER_FLETCHER32)
			vn_refuse(s, object, "filter %d (%s) is not one of deflate, shuffle, fletcher32", (int)f, name);
	}
	if (n < 0)
		vn_refuse(s, object, "its filters cannot be read");
}

/* HDF5 would fill a missing chunk with zeros. */
static void check_chunks(const vn_scan *s, hid_t dset, hid_t dcpl, const char *object, const vn_extent *e)
{
	const hid_t space = H5Dget_space(dset); /* HDF5 1.10 does not accept H5S_ALL */
	hsize_t     dim[VN_MAX_RANK], have = 0, all = 1;
	if (H5Pget_chunk(dcpl, e->rank, dim) != e->rank || H5Dget_num_chunks(dset, space, &have) < 0)
		vn_refuse(s, object, "its layout cannot be read");
	for (int i = 0; i < e->rank; i++)
		all *= ((hsize_t)e->dim[i] + dim[i] - 1) / dim[i];
	H5Sclose(space);
	if (have < all)
		vn_refuse(s, object, "%" PRIu64 " of its %" PRIu64 " chunks were never written", (uint64_t)(all - have),
		          (uint64_t)all);
}

/* Checks the layout's claims about storage against the file. */
static void check_storage(const vn_scan *s, hid_t dset, const char *object, vn_extent *e)
{
	hid_t        dcpl = H5Dget_create_plist(dset);
	H5D_layout_t layout = dcpl >= 0 ? H5Pget_layout(dcpl) : H5D_LAYOUT_ERROR;
	int64_t      bytes = e->count * (int64_t)e->width;

	if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT)
		vn_refuse(s, object,
		          layout == H5D_VIRTUAL ? "a virtual dataset, which is not followed" : "its layout cannot be read");
	if (H5Pget_external_count(dcpl) != 0)
		vn_refuse(s, object, "its numbers are in another file, which is not followed");
	check_filters(s, dcpl, object);

	int     filters = H5Pget_nfilters(dcpl);
	hsize_t stored = H5Dget_storage_size(dset);
	e->direct = layout == H5D_CONTIGUOUS && bytes > 0;
	if (e->direct) {
		haddr_t at = H5Dget_offset(dset);
		if (at == HADDR_UNDEF || stored == 0)
			vn_refuse(s, object, "its numbers were never written");
		if (at > (haddr_t)s->bytes || bytes > s->bytes - (int64_t)at || stored < (hsize_t)bytes)
			vn_refuse(s, object, "%" PRId64 " bytes at offset %" PRIu64 " do not fit into a file of %" PRId64, bytes,
			          (uint64_t)at, s->bytes);
		e->offset = (int64_t)at;
		stored = (hsize_t)bytes;
	} else if (stored > (hsize_t)s->bytes || (uint64_t)bytes / (filters ? MOST_INFLATION : 1) > stored) {
		vn_refuse(s, object, "%" PRId64 " bytes cannot come from the %" PRIu64 " that are stored", bytes,
		          (uint64_t)stored);
	} else if (layout == H5D_CHUNKED) {
		check_chunks(s, dset, dcpl, object, e);
	}
	e->stored = layout == H5D_COMPACT ? 0 : (int64_t)stored; /* compact: in its header */
	H5Pclose(dcpl);
}

vn_extent vn_scan_extent(const vn_scan *s, hid_t dset, hid_t type, const char *object)
{
	vn_extent e = { .count = 1, .width = H5Tget_size(type), .offset = -1 };
	hid_t     space = H5Dget_space(dset);
	hsize_t   dim[H5S_MAX_RANK];

	if (space < 0 || e.width == 0)
		vn_refuse(s, object, "its shape or type cannot be read");
	if (H5Sget_simple_extent_type(space) == H5S_NULL)
		vn_refuse(s, object, "it has no shape");
	e.rank = H5Sget_simple_extent_ndims(space);
	if (e.rank < 0 || e.rank > VN_MAX_RANK)
		vn_refuse(s, object, "rank %d, more than %d", e.rank, VN_MAX_RANK);
	if (H5Sget_simple_extent_dims(space, dim, NULL) != e.rank)
		vn_refuse(s, object, "its shape cannot be read");
	for (int i = 0; i < e.rank; i++) {
		const int64_t most = INT64_MAX / 4 / (int64_t)e.width;
		if (dim[i] > (hsize_t)most || (dim[i] > 0 && e.count > most / (int64_t)dim[i]))
			vn_refuse(s, object, "its shape has more elements than can be counted");
		e.dim[i] = (int64_t)dim[i];
		e.count *= (int64_t)dim[i];
	}
	H5Sclose(space);
	check_storage(s, dset, object, &e);
	return e;
}

/* HDF5 clears two buffers of 1 MB for each read that converts, unless smaller ones are requested. A
 * buffer holds at least one element, stored or converted. */
static void read_all(const vn_scan *s, hid_t dset, hid_t type, const char *object, void *to)
{
	enum { LEAST = 32 << 10 };
	hid_t  stored = H5Dget_type(dset), dxpl = H5Pcreate(H5P_DATASET_XFER);
	size_t each = H5Tget_size(type), from = stored >= 0 ? H5Tget_size(stored) : 0, room = LEAST;
	each = each > from ? each : from;
	room = room > each ? room : each;
	if (stored < 0 || dxpl < 0 || H5Pset_buffer(dxpl, room, NULL, NULL) < 0 ||
	    H5Dread(dset, type, H5S_ALL, H5S_ALL, dxpl, to) < 0)
		vn_refuse(s, object, "it cannot be read");
	H5Pclose(dxpl);
	H5Tclose(stored);
}

char **vn_scan_lines(const vn_scan *s, hid_t dset, const char *object, int64_t *n)
{
	hid_t type = H5Dget_type(dset);

	if (type < 0 || H5Tget_class(type) != H5T_STRING)
		vn_refuse(s, object, "it does not hold strings");
	vn_extent e = vn_scan_extent(s, dset, type, object);
	if (e.rank != 1)
		vn_refuse(s, object, "rank %d, expected 1", e.rank);
	char **line = vn_scan_room(s, object, (size_t)e.count, sizeof *line);
	*n = e.count;
	if (e.count == 0)
		return line;
	if (H5Tis_variable_str(type) > 0) {
		read_all(s, dset, type, object, line);
		for (int64_t i = 0; i < e.count; i++)
			line[i] = line[i] ? line[i] : vn_scan_room(s, object, 1, 1);
	} else {
		VN_FREED char *all = vn_scan_room(s, object, (size_t)e.count, e.width);
		read_all(s, dset, type, object, all);
		for (int64_t i = 0; i < e.count; i++) {
			line[i] = vn_scan_room(s, object, e.width + 1, 1);
			memcpy(line[i], all + (size_t)i * e.width, e.width);
			vn_scan_end_text(type, line[i], e.width);
		}
	}
	return line;
}

int32_t *vn_scan_ids(const vn_scan *s, hid_t dset, const char *object, bool cut_off, int64_t *n, int64_t *batch)
{
	hid_t type = H5Dget_type(dset);

	if (type < 0 || H5Tget_class(type) != H5T_INTEGER || H5Tget_size(type) > 8)
		vn_refuse(s, object, "it does not hold whole numbers");
	vn_extent e = vn_scan_extent(s, dset, type, object);
	if (e.rank != 1 && e.rank != 2)
		vn_refuse(s, object, "rank %d, expected 1, or 2 of a batch", e.rank);
	*batch = e.rank == 2 ? e.dim[0] : 0;
	const int lowest = *batch ? -1 : 0; /* padding of a batch has position -1 */
	int64_t  *wide = vn_scan_room(s, object, (size_t)e.count, sizeof *wide);
	int32_t  *list = vn_scan_room(s, object, (size_t)e.count, sizeof *list);
	if (e.count)
		read_all(s, dset, H5T_NATIVE_INT64, object, wide);
	int64_t count = e.count;
	while (cut_off && !*batch && count > 0 && wide[count - 1] == -1)
		count--;
	for (int64_t i = 0; i < count; i++) {
		if (wide[i] < lowest || wide[i] > INT32_MAX)
			vn_refuse(s, object, "element %" PRId64 " is %" PRId64, i, wide[i]);
		list[i] = (int32_t)wide[i];
	}
	free(wide);
	*n = count;
	return list;
}

/* ---- a table ------------------------------------------------------------------------ */

/* Reads whole rows once. If memory runs out while HDF5 prepares to read one member of a table, HDF5
 * may return the first bytes of each row as that member, without an error. */
vn_scan_table vn_scan_rows(const vn_scan *s, hid_t dset, hid_t type, const vn_extent *e, const char *object)
{
	vn_scan_table t = { object, type, e->count, e->width, vn_scan_room(s, object, (size_t)e->count, e->width) };
	read_all(s, dset, type, object, t.rows);
	return t;
}

/* A column of a table: what is asked of it, and its place in the first row. */
typedef struct column {
	const vn_scan_table       *t;
	const vn_header_attribute *asked;
	hid_t                      type;
	size_t                     width; /* of the type */
	const char                *first;
} column;

/* Returns false if there is no such column. */
static bool find_column(const vn_scan *s, column *c)
{
	const int i = H5Tget_member_index(c->t->type, c->asked->name);

	if (i < 0)
		return false;
	const size_t at = H5Tget_member_offset(c->t->type, (unsigned)i);
	c->type = H5Tget_member_type(c->t->type, (unsigned)i);
	c->width = c->type < 0 ? 0 : H5Tget_size(c->type);
	if (c->width == 0 || at > c->t->width || c->width > c->t->width - at)
		vn_refuse(s, c->t->object, "column %s cannot be read", c->asked->name);
	c->first = c->t->rows + at;
	return true;
}

static void read_texts(const vn_scan *s, const column *c, char *to, size_t size)
{
	const vn_scan_table *t = c->t;
	const size_t         width = c->width;
	const char          *from = c->first;
	if (H5Tget_class(c->type) != H5T_STRING || width > 65536)
		vn_refuse(s, t->object, "column %s does not hold strings", c->asked->name);
	const bool     variable = H5Tis_variable_str(c->type) > 0;
	VN_FREED char *own = vn_scan_room(s, t->object, width + 1, 1);
	for (int64_t i = 0; i < t->n; i++, from += t->width, to += size) {
		char *one = memcpy(own, from, width);
		if (variable)
			memcpy(&one, from, sizeof one);
		else
			vn_scan_end_text(c->type, one, width);
		if (one && strlen(one) >= c->asked->room)
			vn_refuse(s, t->object, "row %" PRId64 ": %s has more than %zu bytes", i, c->asked->name,
			          c->asked->room - 1);
		strcpy(to, one ? one : "");
		vn_utf8_clean(to);
	}
}

static void read_numbers(const vn_scan *s, const column *c, char *to, size_t size)
{
	const vn_scan_table *t = c->t;
	const H5T_class_t class = H5Tget_class(c->type);
	if (class != H5T_FLOAT && class != H5T_INTEGER)
		vn_refuse(s, t->object, "column %s does not hold numbers", c->asked->name);
	const size_t   wider = c->width > sizeof(double) ? c->width : sizeof(double);
	VN_FREED char *all = vn_scan_room(s, t->object, (size_t)t->n, wider);
	for (int64_t i = 0; i < t->n; i++)
		memcpy(all + (size_t)i * c->width, c->first + (size_t)i * t->width, c->width);
	if (H5Tconvert(c->type, H5T_NATIVE_DOUBLE, (size_t)t->n, all, NULL, H5P_DEFAULT) < 0)
		vn_refuse(s, t->object, "column %s cannot be read", c->asked->name);
	for (int64_t i = 0; i < t->n; i++, to += size) {
		double x;
		memcpy(&x, all + (size_t)i * sizeof x, sizeof x);
		const int64_t whole = x >= 0 && x < 9e18 ? (int64_t)x : 0;
		memcpy(to, c->asked->kind == VN_ATTRIBUTE_REAL ? (const void *)&x : &whole, sizeof x);
	}
}

bool vn_scan_column(const vn_scan *s, const vn_scan_table *t, const vn_header_attribute *asked, void *rows, size_t size)
{
	column c = { .t = t, .asked = asked };
	char  *to = (char *)rows + asked->offset;

	if (!find_column(s, &c))
		return false;
	if (asked->kind == VN_ATTRIBUTE_TEXT)
		read_texts(s, &c, to, size);
	else
		read_numbers(s, &c, to, size);
	H5Tclose(c.type);
	return true;
}
