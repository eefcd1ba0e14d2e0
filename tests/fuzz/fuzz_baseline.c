/* fuzz_baseline.c: any bytes as the report of an earlier comparison: accepted as a baseline or
 * refused with one line. Failures are then exactly those that the baseline lacks. */
#include "compare/judge/baseline.h"
#include "compare/chapters/compare.h"
#include "compare/report/report.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static const char         limits[] = "version: 1\ndefaults: { nmse: 1.0e-30, cosine: 1, worst_token_nmse: 1.0e-30 }\n";
static const char *const  points[] = { "layer0.q_proj", "logits" };
static char               path[64];
static vn_compare_options options = { .points = points, .n_points = 2, .threads = 1 };
static bool               all_known; /* by the last input */
static vn_comparison      comparison = { .opened.request.options = &options };

/* Two runs of one model with small differences, and limits that both break. */
static void prepare(void)
{
	static const char folder[] = VERNIER_SOURCE "/fixtures/golden/gpt2-trained.p001.";
	vn_error          err = { "" };
	vn_comparison    *c = &comparison;
	if (c->opened.ref)
		return;
	if (vn_recording_open(VERNIER_SOURCE "/fixtures/golden/gpt2-trained.p001.f64.h5", &c->opened.ref, &err) ||
	    vn_recording_open(VERNIER_SOURCE "/fixtures/golden/gpt2-trained.p001.f32.h5", &c->opened.cand, &err) ||
	    vn_limits_parse("t.yaml", limits, sizeof limits - 1, &c->opened.request.limits, &err) || vn_compare(c, &err)) {
		fprintf(stderr, "%s: %s\n", folder, err.text);
		exit(2);
	}
	const int fd = memfd_create("baseline", 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	options.baseline = path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_comparison *c = &comparison;
	vn_error       err = { "" };
	int            known = 0, failing = 0;
	prepare();
	FILE *f = fopen(path, "w");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
		exit(2);
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		c->result.checkpoints.of[i].fails = true;
		c->result.checkpoints.of[i].since = VN_NO_BASELINE;
		c->result.checkpoints.of[i].was = (double)NAN;
	}
	memset(c->result.n_since, 0, sizeof c->result.n_since);
	if (vn_baseline_apply(&c->opened, &c->result.checkpoints, &c->result.pools, c->result.n_since, &err)) {
		if (!fuzz_one_line(err.text))
			abort();
		return 0;
	}
	for (int i = 0; i < c->result.checkpoints.n; i++) {
		const vn_checkpoint *p = &c->result.checkpoints.of[i];
		failing += p->fails;
		known += p->since == VN_KNOWN || p->since == VN_BETTER;
		if (p->fails == (p->since == VN_KNOWN || p->since == VN_BETTER))
			abort();
	}
	if (failing + known != c->result.checkpoints.n)
		abort();
	all_known = failing == 0;
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static size_t make_seed(int i, uint8_t *out)
{
	const vn_report_options o = { .page = i == 1 };
	vn_document             doc;
	vn_error                err;
	char                   *text = NULL;
	size_t                  n = 0;
	prepare();
	options.baseline = NULL; /* a report without one */
	FILE *to = open_memstream(&text, &n);
	if (!to || vn_document_of(&comparison.opened, &comparison.result, 0, "", &doc, &err) ||
	    vn_report_json(&doc, &o, to, &err) || fclose(to) != 0 || n > FUZZ_ROOM)
		exit(2);
	vn_document_finish(&doc);
	options.baseline = path;
	memcpy(out, text, n);
	free(text);
	return n;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 2, NULL, NULL };
	static uint8_t  seed[FUZZ_ROOM];
	LLVMFuzzerTestOneInput(seed, make_seed(0, seed));
	if (!all_known) /* then mutations would prove nothing */
		return 1;
	const int st = fuzz_main(argc, argv, &plan);
	vn_comparison_close(&comparison);
	return st;
}
#endif
