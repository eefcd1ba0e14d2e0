/* npy.c: see npy.h. The format: numpy.lib.format's documentation. */
#include "capture/import/npy.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- a literal of Python ----------------------------------------------------------------- */

typedef struct npy_reader {
	const char *at, *end;
	const char *why; /* NULL: no error */
} npy_reader;

static void skip_blanks(npy_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool take_sign(npy_reader *r, char c)
{
	skip_blanks(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static void need_sign(npy_reader *r, char c, const char *why)
{
	if (!r->why && !take_sign(r, c))
		r->why = why;
}

/* A string in single or double quotes, without escapes. */
static bool take_quoted(npy_reader *r, char *to, size_t room)
{
	skip_blanks(r);
	if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
		return false;
	const char quote = *r->at++, *from = r->at;
	while (r->at < r->end && *r->at != quote && *r->at != '\\')
		r->at++;
	const size_t n = (size_t)(r->at - from);
	if (r->at == r->end || *r->at != quote || n >= room)
		return false;
	r->at++;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

static bool take_word(npy_reader *r, const char *w)
{
	const size_t n = strlen(w);
	skip_blanks(r);
	if ((size_t)(r->end - r->at) < n || memcmp(r->at, w, n) != 0)
		return false;
	r->at += n;
	return true;
}

static void read_shape(npy_reader *r, vn_shape *shape)
{
	shape->rank = 0;
	need_sign(r, '(', "its shape is not a tuple");
	while (!r->why && !take_sign(r, ')')) {
		int64_t x = 0;
		int     digits = 0;
		for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && digits < 18; r->at++, digits++)
			x = 10 * x + (*r->at - '0');
		if (digits == 0 || digits == 18)
			r->why = "its shape is not of whole numbers of up to 17 digits";
		else if (shape->rank == VN_MAX_RANK)
			r->why = "it has more than 6 axes";
		else
			shape->dim[shape->rank++] = x;
		if (r->at < r->end && *r->at == 'L') /* of Python 2 */
			r->at++;
		if (!r->why && !take_sign(r, ',')) {
			need_sign(r, ')', "its shape is not a tuple");
			return;
		}
	}
}

/* ---- numbers ------------------------------------------------------------------------------ */

static bool little_endian(void)
{
	const uint16_t one = 1;
	return *(const unsigned char *)&one;
}

/* The bytes of one item of a format that is not read: "b1", "c16", "U5" (4 bytes per character). */
static bool unread_width(const char *descr, int *width)
{
	enum { MOST = 1 << 20 };
	int64_t     n;
	const char *end = strchr("biucUSVmM", *descr) ? vn_text_digits(descr + 1, &n) : NULL;
	if (!*descr || !end || (*end && *end != '[') || n < 0 || n > MOST)
		return false;
	*width = (int)n * (*descr == 'U' ? 4 : 1);
	return true;
}

/* "<f4" */
static const char *parse_descr(const char *descr, vn_import_layout *l)
{
	static const struct {
		const char *name;
		vn_dtype    dtype;
		int         width;
		bool        wide_int, bits;
	} known[] = {
		{ "f2", VN_F16, 2, false, false },    { "f4", VN_F32, 4, false, false },
		{ "f8", VN_F64, 8, false, false },    { "i4", VN_I32, 4, false, false },
		{ "i8", VN_I32, 8, true, false },     { "u2", VN_BF16, 2, false, true },
		{ "u1", VN_F8_E4M3, 1, false, true }, { "V2", VN_BF16, 2, false, true },
		{ "V1", VN_F8_E4M3, 1, false, true }, /* ml_dtypes */
	};
	const char order = *descr;
	if (order == 'O' || (order && descr[1] == 'O'))
		return "it holds Python objects (pickled), which are not read: save an array of numbers";
	if (!order || !strchr("<>|=", order))
		return "its dtype is not of one number";
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(descr + 1, known[i].name) == 0) {
			*l = (vn_import_layout) { .dtype = known[i].dtype,
				                      .stored = known[i].dtype,
				                      .width = known[i].width,
				                      .wide_int = known[i].wide_int,
				                      .bits = known[i].bits };
			l->swapped = l->width > 1 && ((order == '>' && little_endian()) || (order == '<' && !little_endian()));
			return NULL;
		}
	*l = (vn_import_layout) { .unread = "its dtype is not one of float16, float32, float64, int32, int64, and the bits "
		                                "of bfloat16 or float8 as uint16 or uint8" };
	return unread_width(descr + 1, &l->width) ? NULL : l->unread;
}

static void read_header(npy_reader *r, vn_npy *npy)
{
	char key[24], descr[16] = "";
	enum { DESCR = 1, FORTRAN = 2, SHAPE = 4 };
	int seen = 0;
	need_sign(r, '{', "its header is not a dictionary");
	while (!r->why && !take_sign(r, '}')) {
		if (!take_quoted(r, key, sizeof key)) {
			r->why = "its header is not a dictionary of descr, fortran_order and shape";
			return;
		}
		const int which = strcmp(key, "descr") == 0           ? DESCR
		                  : strcmp(key, "fortran_order") == 0 ? FORTRAN
		                  : strcmp(key, "shape") == 0         ? SHAPE
		                                                      : 0;
		if (!which || (seen & which))
			r->why = "its header is not a dictionary of descr, fortran_order and shape, each once";
		need_sign(r, ':', "its header is not a dictionary");
		if (r->why)
			return;
		seen |= which;
		if (which == SHAPE)
			read_shape(r, &npy->shape);
		else if (which == DESCR && !take_quoted(r, descr, sizeof descr))
			r->why = "its dtype is not of one number (a structure?)";
		else if (which == FORTRAN && !(npy->layout.fortran = take_word(r, "True")) && !take_word(r, "False"))
			r->why = "fortran_order is neither True nor False";
		if (!r->why && !take_sign(r, ',')) {
			need_sign(r, '}', "its header does not end");
			break;
		}
	}
	const bool fortran = npy->layout.fortran;
	if (!r->why && seen != (DESCR | FORTRAN | SHAPE))
		r->why = "its header lacks descr, fortran_order or shape";
	if (!r->why)
		r->why = parse_descr(descr, &npy->layout);
	npy->layout.fortran = fortran && npy->shape.rank > 1;
}

vn_status vn_npy_parse(const char *path, const void *data, size_t bytes, size_t total, vn_npy *npy, vn_error *err)
{
	enum { MOST_HEADER = 60000 };
	const unsigned char *d = data;
	*npy = (vn_npy) { .at = 0 };
	if (bytes < 10 || memcmp(d, "\x93NUMPY", 6) != 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: not a .npy file", path);
	if (d[6] < 1 || d[6] > 3)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: a .npy file of version %d; 1 to 3 are read", path, d[6]);
	const size_t start = d[6] == 1 ? 10 : 12;
	if (bytes < start)
		return vn_fail(err, VN_ERR_FORMAT, "%s: ends in its header", path);
	const size_t length = d[6] == 1 ? (size_t)d[8] | (size_t)d[9] << 8
	                                : (size_t)d[8] | (size_t)d[9] << 8 | (size_t)d[10] << 16 | (size_t)d[11] << 24;
	if (length > MOST_HEADER)
		return vn_fail(err, VN_ERR_FORMAT, "%s: its header has %zu bytes; up to %d are read", path, length,
		               MOST_HEADER);
	if (length > bytes - start)
		return vn_fail(err, VN_ERR_FORMAT, "%s: ends in its header", path);
	npy_reader r = { .at = (const char *)d + start, .end = (const char *)d + start + length };
	read_header(&r, npy);
	if (r.why)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s", path, r.why);
	npy->at = start + length;
	char text[VN_SHAPE_TEXT];
	if (!vn_import_layout_bytes(&npy->layout, &npy->shape, &npy->bytes))
		return vn_fail(err, VN_ERR_FORMAT, "%s: its shape %s is too large for any file", path,
		               vn_shape_text(&npy->shape, text));
	if (npy->bytes > total - npy->at)
		return vn_fail(err, VN_ERR_FORMAT, "%s: cut off: its shape %s takes %zu bytes, %zu are there", path,
		               vn_shape_text(&npy->shape, text), npy->bytes, total - npy->at);
	if (npy->bytes < total - npy->at)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %zu bytes after the numbers of its shape %s", path,
		               total - npy->at - npy->bytes, vn_shape_text(&npy->shape, text));
	return VN_OK;
}

bool vn_import_layout_is(vn_import_layout *l, vn_dtype dtype)
{
	if (l->unread)
		return false;
	if (l->bits && (int)vn_dtype_size(dtype) == l->width &&
	    (dtype == VN_BF16 || dtype == VN_F8_E4M3 || dtype == VN_F8_E5M2)) {
		l->dtype = l->stored = dtype;
		l->bits = false;
	}
	return !l->bits && l->dtype == dtype;
}

bool vn_import_layout_plain(const vn_import_layout *l)
{
	return !l->unread && !l->swapped && !l->fortran && !l->wide_int && l->stored == l->dtype;
}

bool vn_import_layout_bytes(const vn_import_layout *l, const vn_shape *shape, size_t *bytes)
{
	int64_t n = 1, most = 1;
	for (int i = 0; i < shape->rank; i++) {
		/* A length of 0 must not hide an overflow of the others: the product in
		 * any order must fit. */
		const int64_t d = shape->dim[i] ? shape->dim[i] : 1;
		if (shape->dim[i] < 0 || most > INT64_MAX / 64 / d)
			return false;
		most *= d;
		n *= shape->dim[i];
	}
	*bytes = l->stored >= VN_N_DTYPES ? vn_dtype_bytes(l->stored, (size_t)n) : (size_t)n * (size_t)l->width;
	return true;
}

static void swap_bytes(unsigned char *x, int width)
{
	for (int i = 0; i < width / 2; i++) {
		const unsigned char c = x[i];
		x[i] = x[width - 1 - i];
		x[width - 1 - i] = c;
	}
}

static bool put_number(const vn_import_layout *l, const unsigned char *from, unsigned char *to)
{
	unsigned char x[8];
	memcpy(x, from, (size_t)l->width);
	if (l->swapped)
		swap_bytes(x, l->width);
	if (l->wide_int) {
		int64_t wide;
		memcpy(&wide, x, sizeof wide);
		const int32_t narrow = (int32_t)wide;
		memcpy(to, &narrow, sizeof narrow);
		return wide >= INT32_MIN && wide <= INT32_MAX;
	}
	memcpy(to, x, (size_t)l->width);
	return true;
}

vn_status vn_import_layout_read(const char *path, const char *name, const vn_import_layout *l, const vn_shape *shape,
                                const void *from, void *to, vn_error *err)
{
	const int64_t n = vn_shape_count(shape);
	const size_t  out = vn_dtype_size(l->dtype);
	int64_t       index[VN_MAX_RANK] = { 0 }, step[VN_MAX_RANK], at = 0, next = 1;

	if (l->unread)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "%s: %s: %s", path, name, l->unread);
	if (n == 0)
		return VN_OK;
	if (l->stored != l->dtype) {
		vn_to_f32(to, from, l->stored, (size_t)n);
		return VN_OK;
	}
	if (vn_import_layout_plain(l)) {
		memcpy(to, from, (size_t)n * out);
		return VN_OK;
	}
	for (int i = 0; i < shape->rank; i++) {
		const int axis = l->fortran ? i : shape->rank - 1 - i;
		step[axis] = next;
		next *= shape->dim[axis];
	}
	for (int64_t i = 0; i < n; i++) {
		if (!put_number(l, (const unsigned char *)from + (size_t)at * (size_t)l->width,
		                (unsigned char *)to + (size_t)i * out))
			return vn_fail(err, VN_ERR_FORMAT, "%s: %s: number %" PRId64 " does not fit into an int32", path, name, i);
		for (int a = shape->rank - 1; a >= 0; a--) {
			at += step[a];
			if (++index[a] < shape->dim[a])
				break;
			at -= step[a] * shape->dim[a];
			index[a] = 0;
		}
	}
	return VN_OK;
}
