/* fuzz_report.c: any bytes as a JSON report: refused with one line, or rendered in every form. What
 * is accepted is written as JSON that is accepted, too, and is written the same. */
#include "compare/chapters/compare.h"
#include "compare/report/report.h"
#include "tests/fuzz/mutate.h"

#include <sys/mman.h>
#include <unistd.h>

static const char         limits[] = "version: 1\ndefaults: { nmse: 1.0e-30, cosine: 1, worst_token_nmse: 1.0e-30 }\n"
									 "rules:\n  - { match: \"logits\", kl_mean: 1.0e-9, why: \"none\" }\n";
static const char *const  points[] = { "layer0.q_proj", "logits" };
static char               path[2][64];
static vn_compare_options options = { .points = points, .n_points = 2, .threads = 1 };

static void write_file(const char *to, const void *data, size_t size)
{
	FILE *f = fopen(to, "w");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
		exit(2);
}

/* The caller's to free. */
static char *rendered(const vn_document *doc, const char *form, size_t *n)
{
	const vn_report_options o = { .all = true };
	vn_error                err = { "" };
	char                   *text = NULL;
	FILE                   *to = open_memstream(&text, n);
	if (!to || vn_report_by_name(form)->write(doc, &o, to, &err) || fclose(to) != 0)
		exit(2);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_document doc, again;
	vn_error    err = { "" };
	size_t      n[2];

	for (int i = 0; !*path[1] && i < 2; i++)
		snprintf(path[i], sizeof path[i], "/proc/self/fd/%d", memfd_create("report", 0));
	write_file(path[0], data, size);
	if (vn_document_read(path[0], &doc, &err)) {
		MUST(fuzz_one_line(err.text));
		vn_document_finish(&doc);
		return 0;
	}
	for (int i = 0; vn_report_at(i); i++)
		free(rendered(&doc, vn_report_at(i)->name, &n[0]));
	char *first = rendered(&doc, "json", &n[0]);
	write_file(path[1], first, n[0]);
	MUST(!vn_document_read(path[1], &again, &err));
	char *second = rendered(&again, "json", &n[1]);
	MUST(n[0] == n[1] && memcmp(first, second, n[0]) == 0);
	free(first);
	free(second);
	vn_document_finish(&again);
	vn_document_finish(&doc);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
/* Two runs of one model with small differences, and limits that both break; of this schema, and of
 * the one before. */
static size_t make_seed(int i, uint8_t *out)
{
	vn_comparison c = { .opened.request.options = &options };
	vn_document   doc;
	vn_error      err = { "" };
	size_t        n = 0;

	if (vn_recording_open(VERNIER_SOURCE "/fixtures/golden/gpt2-trained.p001.f64.h5", &c.opened.ref, &err) ||
	    vn_recording_open(VERNIER_SOURCE "/fixtures/golden/gpt2-trained.p001.f32.h5", &c.opened.cand, &err) ||
	    vn_limits_parse("t.yaml", limits, sizeof limits - 1, &c.opened.request.limits, &err) || vn_compare(&c, &err) ||
	    vn_document_of(&c.opened, &c.result, 9, "", &doc, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(2);
	}
	if (i)
		json_string_set(doc.schema, VN_DOCUMENT_BEFORE);
	char *text = rendered(&doc, "json", &n);
	if (n > FUZZ_ROOM)
		exit(2);
	memcpy(out, text, n);
	free(text);
	vn_document_finish(&doc);
	vn_comparison_close(&c);
	return n;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 2, NULL, NULL };
	static uint8_t  seed[FUZZ_ROOM];
	vn_document     doc;
	vn_error        err;

	for (int i = 0; i < 2; i++) { /* else mutations would prove nothing */
		LLVMFuzzerTestOneInput(seed, make_seed(i, seed));
		if (vn_document_read(path[0], &doc, &err) || doc.first < 0)
			return 1;
		vn_document_finish(&doc);
	}
	return fuzz_main(argc, argv, &plan);
}
#endif
