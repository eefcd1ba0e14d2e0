/* scan_read.c: see scan_read.h. */
#include "capture/scan_read.h"

#include "capture/child.h"
#include "capture/driver.h"
#include "libref/base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_TEXT = (size_t)16 << 20; /* bytes of one string */
enum { MOST_ATTRIBUTES = 1000 };

/* Deflate makes at most 1032 bytes of one. */
enum { MOST_INFLATION = 1100 };

void vn_refuse(const vn_scan *s, const char *object, const char *format, ...)
{
	char    frame[sizeof(int32_t) + VN_ERROR_MAX];
	int32_t status = VN_ERR_FORMAT;
	char    why[VN_ERROR_MAX / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	memcpy(frame, &status, sizeof status);
	int n = snprintf(frame + sizeof status, VN_ERROR_MAX, "%s: %s%s%s", s->path, object, *object ? ": " : "", why);
	size_t bytes = n < VN_ERROR_MAX ? (size_t)n : VN_ERROR_MAX - 1;
	vn_child_send(s->pipe, VN_FRAME_FAILED, frame, sizeof status + bytes);
	vn_child_leave(s->pipe);
}

/* Memory, or the end. */
static void *room_for(const vn_scan *s, const char *object, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	if (!p)
		vn_refuse(s, object, "no memory for %zu elements", n);
	return p;
}

hid_t vn_scan_open(const vn_scan *s)
{
	vn_driver *d = vn_driver_create(s->fd, s->path);
	hid_t      fapl = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;

	if (d && fapl >= 0 && H5Pset_driver(fapl, (hid_t)vn_driver_id(), vn_driver_info(d)) >= 0)
		file = H5Fopen(s->path, H5F_ACC_RDONLY, fapl);
	if (file < 0)
		vn_refuse(s, "", "damaged HDF5 structure (it does not open)");
	return file;
}

/* Strings of fixed length may be padded by blanks and lack the NUL. */
static void end_text(hid_t type, char *text, size_t n)
{
	text[n] = '\0';
	if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
		for (n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
			text[n - 1] = '\0';
	vn_utf8_clean(text);
}

/* Most are there, and asking first would look for them twice. */
static hid_t open_attribute(const vn_scan *s, hid_t o, const char *object, const char *name)
{
	hid_t a = H5Aopen(o, name, H5P_DEFAULT);

	if (a < 0 && H5Aexists(o, name) != 0)
		vn_refuse(s, object, "attribute %s cannot be read", name);
	return a;
}

static bool is_one(hid_t a, hid_t type, size_t size)
{
	if (H5Tis_variable_str(type) == 0)
		return H5Aget_storage_size(a) == size;
	hid_t      space = H5Aget_space(a); /* in the file such a string is a reference of another size */
	const bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
	if (space >= 0)
		H5Sclose(space);
	return one;
}

/* One value, of a size that can be read. Returns its type. */
static hid_t one_value(const vn_scan *s, hid_t a, const char *object, const char *name)
{
	hid_t  type = H5Aget_type(a);
	size_t size = type < 0 ? 0 : H5Tget_size(type);

	if (type < 0)
		vn_refuse(s, object, "attribute %s cannot be read", name);
	if (size == 0 || size > MOST_TEXT)
		vn_refuse(s, object, "attribute %s has a value of %zu bytes", name, size);
	if (!is_one(a, type, size))
		vn_refuse(s, object, "attribute %s does not hold one value", name);
	return type;
}

/* A string attribute by malloc. */
static char *text_of(const vn_scan *s, hid_t a, hid_t type, const char *object, const char *name)
{
	char  *text;
	size_t n;

	if (H5Tis_variable_str(type) > 0) {
		char *p = NULL;
		if (H5Aread(a, type, &p) < 0)
			vn_refuse(s, object, "attribute %s cannot be read", name);
		n = p ? strlen(p) : 0;
		if (n > MOST_TEXT)
			vn_refuse(s, object, "attribute %s has %zu bytes", name, n);
		text = room_for(s, object, n + 1, 1);
		if (p)
			memcpy(text, p, n + 1);
		vn_utf8_clean(text);
		return text;
	}
	n = H5Tget_size(type);
	text = room_for(s, object, n + 1, 1);
	if (H5Aread(a, type, text) < 0)
		vn_refuse(s, object, "attribute %s cannot be read", name);
	end_text(type, text, n);
	return text;
}

int vn_scan_text(const vn_scan *s, hid_t o, const char *object, const char *name, char *text, size_t room)
{
	hid_t a = open_attribute(s, o, object, name);
	if (a < 0)
		return 0;
	hid_t type = one_value(s, a, object, name);
	if (H5Tget_class(type) != H5T_STRING)
		vn_refuse(s, object, "attribute %s is not a string", name);
	char *p = text_of(s, a, type, object, name);
	if (strlen(p) >= room)
		vn_refuse(s, object, "attribute %s has %zu bytes, more than %zu", name, strlen(p), room - 1);
	strcpy(text, p);
	free(p);
	H5Tclose(type);
	H5Aclose(a);
	return 1;
}

static bool is_whole(hid_t type)
{
	H5T_class_t c = H5Tget_class(type);
	return (c == H5T_INTEGER || c == H5T_ENUM) && H5Tget_size(type) <= 8;
}

/* Python's bool is an enum of int8. */
static bool read_whole(hid_t a, hid_t type, int64_t *x)
{
	hid_t base = H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : type;
	unsigned char raw[8] = { 0 };

	if (base < 0 || H5Tget_class(base) != H5T_INTEGER || H5Tget_size(base) > 8 || H5Tget_size(type) > 8)
		return false;
	if (base == type)
		return H5Aread(a, H5T_NATIVE_INT64, x) >= 0;
	if (H5Aread(a, type, raw) < 0 || H5Tconvert(base, H5T_NATIVE_INT64, 1, raw, NULL, H5P_DEFAULT) < 0)
		return false;
	memcpy(x, raw, sizeof *x);
	return true;
}

int vn_scan_int(const vn_scan *s, hid_t o, const char *object, const char *name, int64_t *x)
{
	hid_t a = open_attribute(s, o, object, name);
	if (a < 0)
		return 0;
	hid_t type = one_value(s, a, object, name);
	if (!is_whole(type))
		vn_refuse(s, object, "attribute %s is not a whole number", name);
	if (!read_whole(a, type, x))
		vn_refuse(s, object, "attribute %s cannot be read", name);
	H5Tclose(type);
	H5Aclose(a);
	return 1;
}

int vn_scan_real(const vn_scan *s, hid_t o, const char *object, const char *name, double *x)
{
	hid_t a = open_attribute(s, o, object, name);
	if (a < 0)
		return 0;
	hid_t       type = one_value(s, a, object, name);
	H5T_class_t c = H5Tget_class(type);
	if (c != H5T_FLOAT && c != H5T_INTEGER)
		vn_refuse(s, object, "attribute %s is not a number", name);
	if (H5Tget_size(type) > 16 || H5Aread(a, H5T_NATIVE_DOUBLE, x) < 0)
		vn_refuse(s, object, "attribute %s cannot be read", name);
	H5Tclose(type);
	H5Aclose(a);
	return 1;
}

static void send_pair(const vn_scan *s, int frame, const char *key, const char *value)
{
	size_t k = strlen(key) + 1, v = strlen(value) + 1;
	char  *both = room_for(s, key, k + v, 1);
	memcpy(both, key, k);
	memcpy(both + k, value, v);
	vn_child_send(s->pipe, frame, both, k + v);
	free(both);
}

static void send_attribute(const vn_scan *s, hid_t a, const char *object, int frame)
{
	char    key[256], number[64], *text;
	ssize_t n = H5Aget_name(a, sizeof key, key);

	if (n < 0 || (size_t)n >= sizeof key)
		vn_refuse(s, object, "an attribute has a name of %zd bytes", n);
	vn_utf8_clean(key);
	hid_t type = one_value(s, a, object, key);
	if (H5Tget_class(type) == H5T_STRING) {
		text = text_of(s, a, type, object, key);
		send_pair(s, frame, key, text);
		free(text);
	} else if (is_whole(type)) {
		int64_t x;
		if (!read_whole(a, type, &x))
			vn_refuse(s, object, "attribute %s cannot be read", key);
		snprintf(number, sizeof number, "%" PRId64, x);
		send_pair(s, frame, key, number);
	} else if (H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) <= 16) {
		double x;
		if (H5Aread(a, H5T_NATIVE_DOUBLE, &x) < 0)
			vn_refuse(s, object, "attribute %s cannot be read", key);
		snprintf(number, sizeof number, "%.17g", x);
		send_pair(s, frame, key, number);
	} else {
		vn_refuse(s, object, "attribute %s is neither a string nor a number", key);
	}
	H5Tclose(type);
}

void vn_scan_attributes(const vn_scan *s, hid_t o, const char *object, int frame)
{
	H5O_info_t info;

	if (H5Oget_info2(o, &info, H5O_INFO_NUM_ATTRS) < 0)
		vn_refuse(s, object, "its attributes cannot be read");
	if (info.num_attrs > MOST_ATTRIBUTES)
		vn_refuse(s, object, "more than %d attributes", MOST_ATTRIBUTES);
	for (hsize_t i = 0; i < info.num_attrs; i++) {
		hid_t a = H5Aopen_by_idx(o, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
		if (a < 0)
			vn_refuse(s, object, "its attributes cannot be read");
		send_attribute(s, a, object, frame);
		H5Aclose(a);
	}
}

/* ---- datasets --------------------------------------------------------------------- */

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

/* What the layout says of where the numbers are, against what there is. */
static void check_storage(const vn_scan *s, hid_t dset, const char *object, vn_extent *e)
{
	hid_t        dcpl = H5Dget_create_plist(dset);
	H5D_layout_t layout = dcpl >= 0 ? H5Pget_layout(dcpl) : H5D_LAYOUT_ERROR;
	int64_t      bytes = e->count * (int64_t)e->width;

	if (layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED && layout != H5D_COMPACT)
		vn_refuse(s, object, layout == H5D_VIRTUAL ? "a virtual dataset, which is not followed"
		                                           : "its layout cannot be read");
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
	} else if (stored > (hsize_t)s->bytes || (uint64_t)bytes / (filters ? MOST_INFLATION : 1) > stored) {
		vn_refuse(s, object, "%" PRId64 " bytes cannot come from the %" PRIu64 " that are stored", bytes,
		          (uint64_t)stored);
	}
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

/* A list: one axis. */
static vn_extent list_extent(const vn_scan *s, hid_t dset, hid_t type, const char *object)
{
	vn_extent e = vn_scan_extent(s, dset, type, object);
	if (e.rank != 1)
		vn_refuse(s, object, "rank %d, expected 1", e.rank);
	return e;
}

static void read_all(const vn_scan *s, hid_t dset, hid_t type, const char *object, void *to)
{
	if (H5Dread(dset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
		vn_refuse(s, object, "it cannot be read");
}

char **vn_scan_lines(const vn_scan *s, hid_t dset, const char *object, int64_t *n)
{
	hid_t type = H5Dget_type(dset);

	if (type < 0 || H5Tget_class(type) != H5T_STRING)
		vn_refuse(s, object, "it does not hold strings");
	vn_extent e = list_extent(s, dset, type, object);
	char    **line = room_for(s, object, (size_t)e.count, sizeof *line);
	*n = e.count;
	if (e.count == 0)
		return line;
	if (H5Tis_variable_str(type) > 0) {
		read_all(s, dset, type, object, line);
		for (int64_t i = 0; i < e.count; i++)
			line[i] = line[i] ? line[i] : room_for(s, object, 1, 1);
	} else {
		char *all = room_for(s, object, (size_t)e.count, e.width);
		read_all(s, dset, type, object, all);
		for (int64_t i = 0; i < e.count; i++) {
			line[i] = room_for(s, object, e.width + 1, 1);
			memcpy(line[i], all + (size_t)i * e.width, e.width);
			end_text(type, line[i], e.width);
		}
		free(all);
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
	const int lowest = *batch ? -1 : 0; /* what pads a batch stands nowhere */
	int64_t  *wide = room_for(s, object, (size_t)e.count, sizeof *wide);
	int32_t  *list = room_for(s, object, (size_t)e.count, sizeof *list);
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

/* ---- one member of a table ---------------------------------------------------------- */

static hid_t member_type(hid_t dset, const char *member)
{
	hid_t table = H5Dget_type(dset);
	int   i = table >= 0 ? H5Tget_member_index(table, member) : -1;
	return i < 0 ? H5I_INVALID_HID : H5Tget_member_type(table, (unsigned)i);
}

static void read_member(const vn_scan *s, hid_t dset, const char *object, const char *member, hid_t type, void *to)
{
	hid_t one = H5Tcreate(H5T_COMPOUND, H5Tget_size(type));
	if (one < 0 || H5Tinsert(one, member, 0, type) < 0)
		vn_refuse(s, object, "column %s cannot be read", member);
	read_all(s, dset, one, object, to);
	H5Tclose(one);
}

char *vn_scan_member_text(const vn_scan *s, hid_t dset, const char *object, const char *member, int64_t n, size_t room)
{
	hid_t  type = member_type(dset, member);
	size_t width = type >= 0 ? H5Tget_size(type) : 0;

	if (type < 0)
		return NULL;
	if (H5Tget_class(type) != H5T_STRING || width == 0 || width > 65536)
		vn_refuse(s, object, "column %s does not hold strings", member);
	bool  variable = H5Tis_variable_str(type) > 0;
	char *raw = room_for(s, object, (size_t)n, width), *all = room_for(s, object, (size_t)n, room);
	read_member(s, dset, object, member, type, raw);
	for (int64_t i = 0; i < n; i++) {
		char *one = raw + (size_t)i * width, *own = NULL;
		if (variable) {
			memcpy(&one, raw + (size_t)i * width, sizeof one);
		} else {
			own = one = memcpy(room_for(s, object, width + 1, 1), one, width);
			end_text(type, one, width);
		}
		if (one && strlen(one) >= room)
			vn_refuse(s, object, "row %" PRId64 ": %s has more than %zu bytes", i, member, room - 1);
		if (one)
			strcpy(all + (size_t)i * room, one);
		vn_utf8_clean(all + (size_t)i * room);
		free(own);
	}
	free(raw);
	return all;
}

double *vn_scan_member_real(const vn_scan *s, hid_t dset, const char *object, const char *member, int64_t n)
{
	hid_t       type = member_type(dset, member);
	H5T_class_t c = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;

	if (type < 0)
		return NULL;
	if (c != H5T_FLOAT && c != H5T_INTEGER)
		vn_refuse(s, object, "column %s does not hold numbers", member);
	double *all = room_for(s, object, (size_t)n, sizeof *all);
	read_member(s, dset, object, member, H5T_NATIVE_DOUBLE, all);
	return all;
}
