/* dump_text.c: reads one tensor as decimal text, as vernier show --values and numpy.savetxt write
 * it; see dump.h. */
#include "capture/import/dump.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 63 /* bytes of a number */ };

typedef struct text_reader {
	const char *path;
	int         line;
	vn_dtype    dtype;
	vn_shape    shape;
	bool        said; /* a comment gave dtype and shape */
	int64_t     n;    /* numbers so far */
	double     *x;
	int64_t     rows, width; /* lines with numbers; numbers on each line */
} text_reader;

/* Reads "# dtype f32 shape 17 14 64" and ignores other comments. */
static vn_status read_comment(text_reader *t, char *text, vn_error *err)
{
	char *rest = NULL, *word;

	if (t->said || !(word = strtok_r(text, "# \t\r", &rest)) || strcmp(word, "dtype") != 0)
		return VN_OK;
	if (!(word = strtok_r(NULL, " \t\r", &rest)) || !vn_dtype_from_name(word, &t->dtype) || t->dtype >= VN_N_DTYPES)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: '%.20s' is not a number format (f32, f16, bf16, f64, i32)", t->path,
		               t->line, word ? word : "");
	if (!(word = strtok_r(NULL, " \t\r", &rest)) || strcmp(word, "shape") != 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: expected 'shape' and the lengths of the axes after the format",
		               t->path, t->line);
	while ((word = strtok_r(NULL, " \t\r", &rest))) {
		if (t->shape.rank == VN_MAX_RANK || !vn_text_whole(word, 0, INT_MAX, &t->shape.dim[t->shape.rank]))
			return vn_fail(err, VN_ERR_FORMAT,
			               "%s:%d: '%.20s' is not the length of an axis, or the tensor has more than %d axes", t->path,
			               t->line, word, VN_MAX_RANK);
		t->shape.rank++;
	}
	t->said = true;
	return VN_OK;
}

static vn_status read_number(text_reader *t, const char *word, vn_error *err)
{
	const bool   named = strcasecmp(word, "nan") == 0 || strcasecmp(word + (*word == '-' || *word == '+'), "inf") == 0;
	const bool   digits = !word[strspn(word, "0123456789+-.eE")] && strpbrk(word, "0123456789");
	char         text[LONGEST + 1], *end;
	const double x = strtod(word, &end);

	if (strlen(word) > LONGEST || !(named || digits) || *end) {
		snprintf(text, sizeof text, "%s", word);
		vn_text_clean(text, sizeof text);
		return vn_fail(err, VN_ERR_FORMAT, "%s:%d: '%.40s' is not a number", t->path, t->line, text);
	}
	t->x = vn_alloc_grown(t->x, (size_t)t->n, sizeof *t->x);
	t->x[t->n++] = x;
	return VN_OK;
}

/* Cuts a line into words. */
static vn_status read_line(text_reader *t, char *line, vn_error *err)
{
	const int64_t before = t->n;
	char         *comment = strchr(line, '#'), *rest = NULL;

	if (comment)
		*comment++ = '\0';
	for (char *word = strtok_r(line, " \t\r,", &rest); word; word = strtok_r(NULL, " \t\r,", &rest)) {
		const vn_status st = read_number(t, word, err);
		if (st)
			return st;
	}
	if (t->n == before)
		return comment ? read_comment(t, comment, err) : VN_OK;
	if (!t->said && t->rows && t->n - before != t->width)
		return vn_fail(err, VN_ERR_SHAPE, "%s:%d: %lld numbers, the lines before it have %lld", t->path, t->line,
		               (long long)(t->n - before), (long long)t->width);
	t->rows++;
	t->width = t->n - before;
	return VN_OK;
}

static vn_status shape_of(text_reader *t, vn_error *err)
{
	char text[VN_SHAPE_TEXT];

	if (!t->said) {
		t->shape = (vn_shape) { .rank = 2, .dim = { t->rows, t->width } };
		return t->n ? VN_OK : vn_fail(err, VN_ERR_FORMAT, "%s: holds no number", t->path);
	}
	/* Each length has 31 bits, so their product may overflow an int64. */
	int64_t left = t->n;
	for (int i = 0; i < t->shape.rank; i++) {
		if (t->shape.dim[i] == 0 || left % t->shape.dim[i])
			return vn_fail(err, VN_ERR_SHAPE, "%s: holds %lld numbers, its shape is %s", t->path, (long long)t->n,
			               vn_shape_text(&t->shape, text));
		left /= t->shape.dim[i];
	}
	return left == 1 ? VN_OK
	                 : vn_fail(err, VN_ERR_SHAPE, "%s: holds %lld numbers, its shape is %s", t->path, (long long)t->n,
	                           vn_shape_text(&t->shape, text));
}

vn_status vn_dump_text(const char *path, char *text, size_t bytes, vn_npy *as, void **data, vn_error *err)
{
	text_reader t = { .path = path, .dtype = VN_F32 };
	vn_status   st = VN_OK;

	*data = NULL;
	for (char *line = text, *end; !st && line < text + bytes; line = end + 1) {
		end = line + strcspn(line, "\n");
		t.line++;
		if (!*end && end < text + bytes)
			st = vn_fail(err, VN_ERR_FORMAT, "%s:%d: a zero byte: this is not a text file", path, t.line);
		*end = '\0';
		st = st ? st : read_line(&t, line, err);
	}
	if (!st && !(st = shape_of(&t, err))) {
		/* Converts in place: no format is wider than the one read into, and each number is read
		 * before it is overwritten. */
		for (int64_t i = 0; i < t.n; i++) {
			const double x = t.x[i];
			vn_from_f64((char *)t.x + (size_t)i * vn_dtype_size(t.dtype), t.dtype, &x, 1);
		}
		as->layout = (vn_import_layout) { .dtype = t.dtype, .stored = t.dtype, .width = (int)vn_dtype_size(t.dtype) };
		as->shape = t.shape;
		*data = t.x;
		return VN_OK;
	}
	free(t.x);
	return st;
}
