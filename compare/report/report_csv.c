/* report_csv.c: a comparison as CSV (RFC 4180), one row per checkpoint,
 * for a spreadsheet or pandas.
 *
 * Columns: specs/json.md. Every metric is a column under the name it has in limits and in
 * JSON. A value that was not measured is an empty cell; "inf" and "-inf" are values. Digits are
 * enough for float. */
#include "compare/comparison/checkpoint.h"
#include "compare/judge/check_words.h"
#include "compare/replay/local.h"
#include "compare/report/report.h"
#include "compare/text/markup.h"
#include "libref/base/say.h"

#include <inttypes.h>
#include <math.h>

static void print_head(FILE *out)
{
	fputs("name,step,layer,point,op,shape,status,fails,first,origin,elements", out);
	for (int m = 0; m < VN_N_METRICS; m++)
		vn_say(out, ",%s", vn_metric_get((vn_metric)m)->name);
	fputs(",floor_nmse,nmse_over_floor,local_nmse,local_over_floor,limit_fraction,why\n", out);
}

static void write_number(FILE *out, double x, bool known)
{
	fputc(',', out);
	if (known && !isnan(x))
		fprintf(out, "%.9g", x);
}

static void print_text(FILE *out, const char *said)
{
	fputc(',', out);
	vn_csv_text(out, said);
}

static void print_shape(FILE *out, const vn_shape *s)
{
	fputc(',', out);
	for (int i = 0; i < s->rank; i++)
		vn_say(out, "%s%" PRId64, i ? "x" : "", s->dim[i]);
}

static void print_row(const vn_document *doc, int point, FILE *out)
{
	const vn_checkpoint  *p = &doc->checkpoint[point];
	const vn_tensor_facts about = vn_document_about(doc, p);
	char                  label[VN_LABEL], words[VN_WORDS];
	double                ratio = NAN;
	const bool            has_ratio = p->m.n && vn_ratio_of(doc, p, &ratio);
	vn_csv_text(out, vn_label(p, label));
	fprintf(out, ",%d,", p->step);
	if (p->layer >= 0)
		fprintf(out, "%d", p->layer);
	print_text(out, vn_point_of(p));
	print_text(out, about.op);
	print_shape(out, &about.shape);
	print_text(out, vn_checkpoint_status_text(p->status));
	fprintf(out, ",%d,%d,%d,%" PRId64, p->fails, point == doc->first, p->origin, p->m.n);
	for (int m = 0; m < VN_N_METRICS; m++)
		write_number(out, vn_metric_shown(p, (vn_metric)m), true);
	write_number(out, vn_floor_value(p, VN_M_NMSE), p->has_floor);
	write_number(out, ratio, has_ratio);
	write_number(out, vn_local_nmse(p), p->replayed);
	write_number(out, vn_local_over_floor(p), p->replayed);
	write_number(out, vn_checkpoint_limit_fraction(p), true);
	print_text(out, p->fails ? vn_judge_say_failure(p, words) : "");
	fputc('\n', out);
}

vn_status vn_report_csv(const vn_document *doc, const vn_report_options *o, FILE *out, vn_error *err)
{
	(void)o, (void)err;
	print_head(out);
	for (int i = 0; i < doc->n; i++)
		print_row(doc, i, out);
	return VN_OK;
}
