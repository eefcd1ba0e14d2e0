/* scan_read.c: a file and its attributes; see scan_read.h. */
#include "capture/recording/scan_read.h"

#include "capture/file/child.h"
#include "capture/file/driver.h"
#include "libref/base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST_TEXT = (size_t)16 << 20; /* bytes of one string */
enum { MOST_ATTRIBUTES = 1000 };

void vn_refuse(const vn_scan *s, const char *object, const char *format, ...)
{
	char    why[VN_ERROR_MAX / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	vn_child_refuse(s->pipe, "%s: %s%s%s", s->path, object, *object ? ": " : "", why);
}

void *vn_scan_room(const vn_scan *s, const char *object, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);
	if (!p)
		vn_refuse(s, object, "no memory for %zu elements", n);
	return p;
}

enum { SLOTS = 521 }; /* HDF5's own number */

hid_t vn_scan_open(const vn_scan *s, size_t cache)
{
	vn_h5_lock(); /* for what it sets once */
	vn_h5_unlock();
	vn_driver *d = vn_driver_create(s->fd, s->path, s->bytes);
	hid_t      fapl = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;

	if (cache && fapl >= 0)
		H5Pset_cache(fapl, 0, SLOTS, cache, 1.0);
	if (d && fapl >= 0 && H5Pset_driver(fapl, (hid_t)vn_driver_id(), vn_driver_info(d)) >= 0)
		file = H5Fopen(s->path, H5F_ACC_RDONLY, fapl);
	if (file < 0)
		vn_refuse(s, "", "damaged HDF5 structure (it does not open)");
	return file;
}

void vn_scan_end_text(hid_t type, char *text, size_t n)
{
	text[n] = '\0';
	if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
		for (n = strlen(text); n > 0 && text[n - 1] == ' '; n--)
			text[n - 1] = '\0';
	vn_utf8_clean(text);
}

/* Opens directly: most attributes exist, and asking first would look them up twice. */
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
	hid_t      space = H5Aget_space(a); /* in the file a variable string is a reference of another size */
	const bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
	if (space >= 0)
		H5Sclose(space);
	return one;
}

/* Checks for one value of a readable size and returns its type. */
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

/* A string attribute, allocated. */
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
		text = vn_scan_room(s, object, n + 1, 1);
		if (p)
			memcpy(text, p, n + 1);
		vn_utf8_clean(text);
		return text;
	}
	n = H5Tget_size(type);
	text = vn_scan_room(s, object, n + 1, 1);
	if (H5Aread(a, type, text) < 0)
		vn_refuse(s, object, "attribute %s cannot be read", name);
	vn_scan_end_text(type, text, n);
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
	VN_FREED char *p = text_of(s, a, type, object, name);
	if (strlen(p) >= room)
		vn_refuse(s, object, "attribute %s has %zu bytes, more than %zu", name, strlen(p), room - 1);
	strcpy(text, p);
	H5Tclose(type);
	H5Aclose(a);
	return 1;
}

static bool is_whole(hid_t type)
{
	H5T_class_t c = H5Tget_class(type);
	return (c == H5T_INTEGER || c == H5T_ENUM) && H5Tget_size(type) <= 8;
}

/* Python stores bool as an enum of int8. */
static bool read_whole(hid_t a, hid_t type, int64_t *x)
{
	hid_t         base = H5Tget_class(type) == H5T_ENUM ? H5Tget_super(type) : type;
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
	size_t         k = strlen(key) + 1, v = strlen(value) + 1;
	VN_FREED char *both = vn_scan_room(s, key, k + v, 1);
	memcpy(both, key, k);
	memcpy(both + k, value, v);
	vn_child_send(s->pipe, frame, both, k + v);
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
