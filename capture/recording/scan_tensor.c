/* scan_tensor.c: see scan_tensor.h. Both ways read the same list of attributes. */
#include "capture/recording/scan_tensor.h"

#include "capture/file/driver.h"

#include <stdlib.h>
#include <string.h>

/* What is filled. */
typedef struct filled_tensor {
	vn_seen_tensor t;
	char           dtype[16];
} filled_tensor;

#define FIELD(name, kind) \
	{ \
#name, VN_ATTRIBUTE_##kind, offsetof(filled_tensor, t.name), sizeof(((filled_tensor *)0)->t.name) \
	}
/* clang-format off */
static const vn_header_attribute list[] = {
	{ "dtype", VN_ATTRIBUTE_TEXT, offsetof(filled_tensor, dtype), sizeof(((filled_tensor *)0)->dtype) },
	FIELD(order, WHOLE), FIELD(layer, WHOLE), FIELD(point, TEXT), FIELD(op, TEXT), FIELD(basis, TEXT),
	FIELD(axes, TEXT), FIELD(digest, TEXT), FIELD(min, REAL), FIELD(max, REAL), FIELD(mean, REAL),
	FIELD(rms, REAL), FIELD(absmax, REAL), FIELD(nan, WHOLE), FIELD(inf, WHOLE), FIELD(source_line, TEXT),
};
/* clang-format on */
enum {
	N_ATTRIBUTES = sizeof list / sizeof *list,
	DIGEST = 7,
	STATISTICS = 8,
	N_STATISTICS = 7,
	ALL_STATISTICS = ((1 << N_STATISTICS) - 1) << STATISTICS
};

/* ---- its type --------------------------------------------------------------------------- */

/* Each supported type, native and big-endian, with its encoding in a file. */
typedef struct own_type {
	hid_t         type;
	unsigned char code[2 + VN_TYPE_BYTES]; /* H5Tencode adds two bytes in front */
	size_t        bytes;
} own_type;

static const own_type *own_types(void)
{
	static own_type all[2 * VN_N_DTYPES];
	static bool     ready;
	for (int i = 0; !ready && i < 2 * VN_N_DTYPES; i++) {
		own_type *o = &all[i];
		o->type = vn_h5_type((vn_dtype)(i / 2), i % 2);
		if (o->type < 0 || H5Tencode(o->type, NULL, &o->bytes) < 0 || o->bytes > sizeof o->code ||
		    H5Tencode(o->type, o->code, &o->bytes) < 0)
			o->bytes = 1; /* the code of nothing */
	}
	ready = true;
	return all;
}

/* Returns the dtype of a dataset. same[i]: its type equals supported type i. Of types that only the
 * attribute dtype distinguishes, takes the one named `word`, else the first. */
static int choose_dtype(const vn_scan *s, const bool same[2 * VN_N_DTYPES], const char *word, const char *object,
                        bool *big)
{
	int d = -1;

	for (int i = 0; i < 2 * VN_N_DTYPES; i++)
		if (same[i] && (d < 0 || strcmp(word, vn_dtype_name((vn_dtype)(i / 2))) == 0)) {
			*big = i % 2;
			d = i / 2;
		}
	if (d >= 0 && vn_h5_says_dtype((vn_dtype)d) && strcmp(word, vn_dtype_name((vn_dtype)d)) != 0)
		vn_refuse(s, object,
		          d == VN_BF16 ? "unsigned 16-bit numbers without the attribute dtype = bf16"
		                       : "unsigned 8-bit numbers without the attribute dtype = f8_e4m3 or f8_e5m2");
	if (d < 0)
		vn_refuse(s, object, "its type is not one of f16, bf16, f32, f64, f8_e4m3, f8_e5m2, i32");
	for (int other = 0; other < VN_N_DTYPES; other++) /* unknown words are ignored */
		if (other != d && strcmp(word, vn_dtype_name((vn_dtype)other)) == 0)
			vn_refuse(s, object, "it holds %s, but its attribute dtype is %s", vn_dtype_name((vn_dtype)d), word);
	return d;
}

/* An empty digest would read as none. */
static void check_digest(const vn_scan *s, const char *object, unsigned attributes, const char *digest)
{
	if (attributes >> DIGEST & 1 && !*digest)
		vn_refuse(s, object, "attribute digest is empty, expected 32 hex digits");
}

/* ---- by its header ---------------------------------------------------------------------- */

vn_header_reader *vn_scan_reader(const vn_scan *s, hid_t file)
{
	hsize_t           before = 1;
	size_t            address = 0, length = 0;
	hid_t             how = H5Fget_create_plist(file);
	vn_header_reader *r = NULL;

	if (how >= 0 && H5Pget_userblock(how, &before) >= 0 && before == 0 && H5Pget_sizes(how, &address, &length) >= 0 &&
	    address == 8 && length == 8 && (r = calloc(1, sizeof *r))) {
		const uint64_t end = vn_driver_end(file);
		r->fd = s->fd;
		r->bytes = end < (uint64_t)s->bytes ? (int64_t)end : s->bytes; /* HDF5 finds nothing beyond that */
	}
	return r;
}

bool vn_scan_tensor_header(const vn_scan *s, vn_header_reader *r, const char *object, vn_seen_tensor *t,
                           int64_t *stored)
{
	const own_type  *own = own_types();
	vn_object_header h;
	filled_tensor    f = { .t = *t };
	bool             same[2 * VN_N_DTYPES], any = false, big = false;

	if (!vn_object_header_read(r, t->address, list, N_ATTRIBUTES, &f, &h))
		return false;
	for (int i = 0; i < 2 * VN_N_DTYPES; i++)
		any |= same[i] = h.type_bytes + 2 == own[i].bytes && memcmp(h.type, own[i].code + 2, h.type_bytes) == 0;
	if (!any)
		return false;
	f.t.dtype = choose_dtype(s, same, f.dtype, object, &big);
	const int64_t bytes = vn_scan_bytes(h.shape.dim, h.shape.rank, (int64_t)vn_dtype_size((vn_dtype)f.t.dtype));
	if (bytes <= 0 || (uint64_t)bytes > h.stored || h.offset > (uint64_t)s->bytes ||
	    bytes > s->bytes - (int64_t)h.offset)
		return false;
	f.t.rank = h.shape.rank;
	memcpy(f.t.dim, h.shape.dim, sizeof f.t.dim);
	f.t.offset = big ? -1 : (int64_t)h.offset;
	f.t.has_stats = (h.found & ALL_STATISTICS) == ALL_STATISTICS;
	check_digest(s, object, h.found, f.t.digest);
	*t = f.t;
	*stored = bytes;
	return true;
}

/* ---- by HDF5 ---------------------------------------------------------------------------- */

static int scan_attribute(const vn_scan *s, hid_t d, const char *object, const vn_header_attribute *a, filled_tensor *f)
{
	char   *to = (char *)f + a->offset;
	int64_t whole;
	double  real;
	int     there;

	switch (a->kind) {
	case VN_ATTRIBUTE_TEXT: return vn_scan_text(s, d, object, a->name, to, a->room);
	case VN_ATTRIBUTE_WHOLE:
		if ((there = vn_scan_int(s, d, object, a->name, &whole)))
			memcpy(to, &whole, sizeof whole);
		return there;
	case VN_ATTRIBUTE_REAL:
		if ((there = vn_scan_real(s, d, object, a->name, &real)))
			memcpy(to, &real, sizeof real);
		return there;
	}
	return 0;
}

void vn_scan_tensor(const vn_scan *s, hid_t d, const char *object, vn_seen_tensor *t, int64_t *stored)
{
	const own_type *own = own_types();
	const hid_t     type = H5Dget_type(d);
	filled_tensor   f = { .t = *t };
	bool            same[2 * VN_N_DTYPES], big = false;
	unsigned        attributes = 0;

	if (type < 0)
		vn_refuse(s, object, "its type cannot be read");
	scan_attribute(s, d, object, &list[0], &f);
	for (int i = 0; i < 2 * VN_N_DTYPES; i++)
		same[i] = H5Tequal(type, own[i].type) > 0;
	f.t.dtype = choose_dtype(s, same, f.dtype, object, &big);
	vn_extent e = vn_scan_extent(s, d, type, object);
	f.t.rank = e.rank;
	memcpy(f.t.dim, e.dim, sizeof f.t.dim);
	f.t.offset = e.direct && !big ? e.offset : -1;
	for (int i = 1; i < N_ATTRIBUTES; i++)
		attributes |= (unsigned)scan_attribute(s, d, object, &list[i], &f) << i;
	f.t.has_stats = (attributes & ALL_STATISTICS) == ALL_STATISTICS;
	check_digest(s, object, attributes, f.t.digest);
	H5Tclose(type);
	*t = f.t;
	*stored = e.stored;
}
