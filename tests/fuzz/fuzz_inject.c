/* fuzz_inject.c: any words behind --inject, on a small model with attention and one
 * with Gated DeltaNet.
 *
 * Input: "FAULT@GLOB" after "FAULT@GLOB", a line each. A fault is refused with one line, or leaves
 * a plan that an engine accepts and whose values begin with those of the unmodified plan. The
 * unmodified plan stays unchanged. */
#include "capture/run/recorder_fault.h"
#include "libref/model/model.h"
#include "libref/plan/fault.h"
#include "tests/fuzz/mutate.h"

static const char *const models[] = { VERNIER_SOURCE "/fixtures/qwen3-trained",
	                                  VERNIER_SOURCE "/fixtures/qwen3_5_text-trained" };
enum { MODELS = sizeof models / sizeof *models };

typedef struct kept {
	vn_model *m;
	vn_plan  *copy, was; /* was: the bytes of the plan's nodes and values */
	unsigned  runs;
} kept;

static void *bytes_of(const void *from, size_t n)
{
	void *to = malloc(n);

	return to ? memcpy(to, from, n) : NULL;
}

static void keep(kept *k, const char *model)
{
	if (vn_model_open(model, &k->m, NULL) || vn_plan_clone(vn_model_plan(k->m), &k->copy, NULL))
		abort();
	k->was = *vn_model_plan(k->m);
	k->was.node = bytes_of(k->was.node, (size_t)k->was.n_nodes * sizeof *k->was.node);
	k->was.value = bytes_of(k->was.value, (size_t)k->was.n_values * sizeof *k->was.value);
	if (!k->was.node || !k->was.value)
		abort();
}

/* All that the plan points to takes half of the time of a run: in every 256th. */
static bool is_unchanged(kept *k)
{
	const vn_plan *p = vn_model_plan(k->m);

	return p->n_nodes == k->was.n_nodes && p->n_values == k->was.n_values &&
	       memcmp(p->node, k->was.node, (size_t)p->n_nodes * sizeof *p->node) == 0 &&
	       memcmp(p->value, k->was.value, (size_t)p->n_values * sizeof *p->value) == 0 &&
	       (k->runs++ % 256 || vn_plan_equal(p, k->copy));
}

static void one_line(const vn_error *e)
{
	if (!fuzz_one_line(e->text))
		abort();
}

static void inject(kept *k, const char *text)
{
	const vn_plan     *p = vn_model_plan(k->m);
	vn_faulty         *f = NULL;
	vn_recorder_fault *r = vn_recorder_fault_create(p);
	char               line[400];

	if (vn_faulty_create(p, vn_model_weights(k->m), &f, NULL))
		abort();
	for (int n = 0; n < 4 && *text; n++) {
		const size_t length = strcspn(text, "\n");
		vn_error     e = { "" };
		snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), text);
		text += length + (text[length] == '\n');
		const vn_status st = vn_recorder_fault_find(line) >= 0 ? vn_recorder_fault_inject(r, line, &e)
		                                                       : vn_faulty_inject(f, line, &e);
		if (st) {
			one_line(&e);
			break; /* the faulty plan is to be destroyed */
		}
		const vn_plan *q = vn_faulty_plan(f);
		if (vn_plan_check(q, NULL) || q->n_values < p->n_values)
			abort();
		for (int v = 0; v < p->n_values; v++)
			if (strcmp(q->value[v].name, p->value[v].name) != 0)
				abort();
	}
	if (!is_unchanged(k))
		abort();
	vn_faulty_destroy(f);
	vn_recorder_fault_destroy(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static kept k[MODELS];
	char        text[1200];

	snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text - 1 ? size : sizeof text - 1), (const char *)data);
	for (int i = 0; i < MODELS; i++) {
		if (!k[i].m)
			keep(&k[i], models[i]);
		inject(&k[i], text);
	}
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"R1@layer1.q_rope",
	"A9@*\nA10.heads@layer0",
	"N14.twice@layer0\nR9@*\nN10@layer0",
	"W4.weights@layer*\nW5@layer0",
	"P9@layer1.{q,k}_proj",
	"R10.cached@*\nR11@layer0",
	"C8@*",
	"M8@logits\nM9.log@*",
	"G17@*\nG15@layer2.gdn_core",
	"P13@layer1.attn_norm",
	"M6@*",
	"R99@*",
	"R1",
	"@",
	"N15@*\nP5@*",
	"W1@layer0.{q_proj,attn_out}",
	"R10.again@*\nC2.seen@*",
	"A16@layer0\nA3.uniform@*\nG4.k@*",
	"G20.late@*\nG12.qk@layer0\nP9.barrier@*",
	"P8.prompt@layer1.*",
};

int main(int argc, char **argv)
{
	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
