/* show_values.c: writes the numbers of a tensor to a file, as text or for numpy;
 * see show_values.h. */
#include "capture/show/show_values.h"
#include "capture/show/show_text.h"
#include "capture/file/output.h"

#include "libref/base/say.h"
#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef void writer(FILE *out, const vn_entry *e, const void *data);

/* Name and dims are untrusted: nothing in them may end the comment. */
static void print_comment(FILE *out, const vn_entry *e)
{
	char name[4 * VN_NAME_MAX], axes[4 * VN_AXES_MAX];

	snprintf(name, sizeof name, "%s", e->name);
	snprintf(axes, sizeof axes, "%s", vn_entry_axes(e));
	vn_say(out, "# dtype %s shape", vn_dtype_name(e->dtype));
	for (int i = 0; i < e->shape.rank; i++)
		fprintf(out, " %" PRId64, e->shape.dim[i]);
	vn_say(out, "\n# %s step %d dims %s\n", vn_text_clean(name, sizeof name), e->step,
	       vn_text_clean(axes, sizeof axes));
}

static void print_rows(FILE *out, const vn_entry *e, const void *data, char between)
{
	const int64_t n = vn_shape_count(&e->shape), width = e->shape.rank ? e->shape.dim[e->shape.rank - 1] : 1;

	print_comment(out, e);
	for (int64_t i = 0; i < n; i++) {
		const double x = vn_show_value(data, e->dtype, i);
		if (i % width)
			fputc(between, out);
		if (isnan(x))
			fputs("nan", out); /* C libraries differ in the sign of a NaN */
		else
			fprintf(out, e->dtype == VN_F64 || e->dtype == VN_I32 ? "%.17g" : "%.9g", x);
		if ((i + 1) % width == 0)
			fputc('\n', out);
	}
}

static void print_text(FILE *out, const vn_entry *e, const void *data)
{
	print_rows(out, e, data, ' ');
}

static void print_csv(FILE *out, const vn_entry *e, const void *data)
{
	print_rows(out, e, data, ',');
}

/* Version 1 of the format: a header of 128 bytes; its text starts at byte 10. */
static void print_npy(FILE *out, const vn_entry *e, const void *data)
{
	static const char magic[] = { (char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0 };
	const bool        kept = e->dtype == VN_F16 || e->dtype == VN_F32 || e->dtype == VN_F64 || e->dtype == VN_I32;
	const char   *format = e->dtype == VN_F16 ? "<f2" : e->dtype == VN_F64 ? "<f8" : e->dtype == VN_I32 ? "<i4" : "<f4";
	char          head[119] = "";
	const int64_t n = vn_shape_count(&e->shape);

	vn_text_add(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (", format);
	for (int i = 0; i < e->shape.rank; i++)
		vn_text_add(head, sizeof head, "%" PRId64 ",%s", e->shape.dim[i], i + 1 < e->shape.rank ? " " : "");
	vn_text_add(head, sizeof head, "), }");
	fwrite(magic, 1, sizeof magic, out);
	vn_say(out, "%-117s\n", head);
	if (kept)
		fwrite(data, vn_dtype_size(e->dtype), (size_t)n, out);
	for (int64_t i = 0; !kept && i < n; i++) {
		const float x = (float)vn_show_value(data, e->dtype, i);
		fwrite(&x, sizeof x, 1, out);
	}
}

static writer *writer_of(const char *path)
{
	static const struct {
		const char *end;
		writer     *write;
	} by[] = { { ".txt", print_text }, { ".csv", print_csv }, { ".npy", print_npy } };
	const char *end = strrchr(path, '.');

	for (size_t i = 0; end && i < sizeof by / sizeof *by; i++)
		if (strcmp(end, by[i].end) == 0)
			return by[i].write;
	return NULL;
}

bool vn_show_values_form(const char *path)
{
	return writer_of(path) != NULL;
}

vn_status vn_show_values(const vn_entry *e, const void *data, const char *path, bool force, vn_error *err)
{
	vn_output       out;
	const vn_status st = vn_output_open(&out, path, VN_PLACE_NUMBERS, force, err);

	if (st)
		return st;
	writer_of(path)(out.file, e, data);
	return vn_output_close(&out, VN_OK, err);
}
