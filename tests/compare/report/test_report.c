/* test_report.c: the content of reports about comparisons. */
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/report/report.h"
#include "libref/base/trouble.h"
#include "tests/support/faulty_help.h"

#include <jansson.h>

static void against_good(trial *t, const char *name, const fault *f)
{
	record("good", &(fault) { 0 });
	record(name, f);
	compare(t, "good", name, strict);
}

/* The caller's to free. */
static char *report_of(trial *t, const char *form)
{
	char                   *text = NULL;
	size_t                  n = 0;
	FILE                   *f = open_memstream(&text, &n);
	const vn_report_options o = { .all = false };
	vn_document             doc;
	CU_ASSERT_EQUAL(vn_document_of(&t->c.opened, &t->c.result, 9, "test", &doc, &t->err), VN_OK);
	CU_ASSERT_EQUAL(vn_report_by_name(form)->write(&doc, &o, f, &t->err), VN_OK);
	vn_document_finish(&doc);
	fclose(f);
	return text;
}

static long left; /* allocations of Jansson that succeed */

static void *allocate_few(size_t bytes)
{
	if (left-- > 0)
		return malloc(bytes);
	vn_trouble_note(NULL); /* as json.c does */
	return NULL;
}

static void a_document_without_memory_is_none(void)
{
	trial         t = { 0 };
	vn_document   doc;
	json_malloc_t usual;
	json_free_t   release;
	long          failed = 0;
	against_good(&t, "swapped", &(fault) { .nan_in = "layer1.mlp_norm" });
	json_get_alloc_funcs(&usual, &release);
	json_set_alloc_funcs(allocate_few, release);
	do {
		left = failed;
		const vn_status st = vn_document_of(&t.c.opened, &t.c.result, 9, "test", &doc, &t.err);
		CU_ASSERT_EQUAL(st, left < 0 ? VN_ERR_NOMEM : VN_OK);
		vn_document_finish(&doc);
		failed += 5;
	} while (left < 0);
	json_set_alloc_funcs(usual, release);
	CU_ASSERT_TRUE(failed > 500);
	finish(&t);
}

static json_t *json_of(trial *t)
{
	char   *text = report_of(t, "json");
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	CU_ASSERT_PTR_NOT_NULL(j);
	return j;
}

static void json_says_the_same_and_knows_no_nan(void)
{
	trial t = { 0 }, zero = { 0 };
	against_good(&t, "nan", &(fault) { .nan_in = "layer1.mlp_norm" });
	json_t *j = json_of(&t);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "schema")), "vernier-compare/3");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "verdict")), "outside");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "first_divergence")), "layer1.mlp_norm");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "origins")), 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "checkpoints")), (size_t)t.c.result.checkpoints.n);
	const json_t *d = json_array_get(json_object_get(j, "divergences"), 0);
	const json_t *cand = json_object_get(d, "candidate");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(cand, "around"), 0)), "nan");
	json_decref(j);

	/* 17 digits read back as the same double. */
	against_good(&zero, "v", &(fault) { .bias_of = "layer0.v_proj" });
	j = json_of(&zero);
	for (int i = 0; i < zero.c.result.checkpoints.n; i++) {
		const json_t *p = json_array_get(json_object_get(j, "checkpoints"), (size_t)i);
		CU_ASSERT_EQUAL(json_real_value(json_object_get(json_object_get(p, "metrics"), "nmse")),
		                zero.c.result.checkpoints.of[i].m.value[VN_M_NMSE]);
	}
	json_decref(j);
	finish(&t);
	finish(&zero);
}

static void the_values_shown_are_those_around_the_worst_element(void)
{
	trial t = { 0 };
	against_good(&t, "theta", &(fault) { .theta_of = "layer1.k_rope" });
	json_t          *j = json_of(&t);
	const json_t    *d = json_array_get(json_object_get(j, "divergences"), 0);
	const json_t    *index = json_object_get(json_object_get(d, "worst_element"), "index");
	const json_int_t at = json_integer_value(json_array_get(index, json_array_size(index) - 1)) -
	                      json_integer_value(json_object_get(json_object_get(d, "around"), "from"));

	CU_ASSERT(json_integer_value(json_array_get(index, 0)) > 0); /* the first token is not rotated */
	CU_ASSERT_FATAL(at >= 0 &&
	                (size_t)at < json_array_size(json_object_get(json_object_get(d, "reference"), "around")));
	for (int i = 0; i < 2; i++) {
		const json_t *side = json_object_get(d, i ? "candidate" : "reference");
		CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(side, "around"), (size_t)at)),
		                json_real_value(json_object_get(side, "worst")));
	}
	json_decref(j);
	finish(&t);
}

static void the_text_names_origin_values_and_rule(void)
{
	trial t = { 0 };
	against_good(&t, "theta", &(fault) { .theta_of = "layer1.k_rope" });
	char             *text = report_of(&t, "text");
	static const char top[] = "first      layer1.k_rope\nrule       ", end[] = "\nverdict    OUTSIDE limits: ";
	CU_ASSERT_EQUAL(strncmp(text, top, sizeof top - 1), 0);
	char *table = strstr(text, "\n\n"), *last = strstr(text, end);
	CU_ASSERT_FATAL(table && last);
	CU_ASSERT_STRING_EQUAL(strchr(last + sizeof end, '\n'), "\n"); /* the last line */
	CU_ASSERT_PTR_EQUAL(strstr(text, "OUTSIDE limits"), last + sizeof end - sizeof "OUTSIDE limits: "); /* once */
	*table = 0; /* above it, without scrolling */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "(t.yaml:2)"));
	*table = '\n';
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "first divergence and origin: layer1.k_rope   layer 1, point k_rope, op rope"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "(t.yaml:2)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "worst element  token "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "within limits: layer1.k_proj"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "The error starts at layer1.k_rope"));
	CU_ASSERT_PTR_NULL(strchr(text, '\033')); /* no colour unless asked for */
	free(text);
	finish(&t);
}

static void a_value_just_beyond_its_limit_is_seen_to_be(void)
{
	static const struct {
		double      value, limit;
		const char *says;
	} cases[] = {
		{ 0.01000001, 0.01, "norm_ratio 0.01000001 from 1, limit 0.01 (" },
		{ 0.02, 0.0123456, "norm_ratio 0.02 from 1, limit 0.0123456 (" },
		{ 0.0100000000000000019, 0.01, "norm_ratio 0.010000000000000002 from 1, limit 0.01 (" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		trial t = { 0 };
		against_good(&t, "theta", &(fault) { .theta_of = "layer1.k_rope" });
		vn_checkpoint *p = &t.c.result.checkpoints.of[t.c.result.localised.first];
		for (int k = 0; k < p->n_checks; k++)
			if (vn_check_at(p, k).metric == VN_M_NORM_RATIO) {
				vn_check x = vn_check_at(p, k);
				x.value = cases[i].value;
				x.limit = cases[i].limit;
				x.holds = false;
				p->worst = k;
				vn_checks_set(&t.c.result.checkpoints.terms, p, k, &x);
			}
		char *text = report_of(&t, "text");
		int   said = 0;
		for (const char *at_it = text; (at_it = strstr(at_it, cases[i].says)) != NULL; at_it++)
			said++;
		CU_ASSERT_EQUAL(said, 3); /* on top, in the table and in full */
		free(text);
		finish(&t);
	}
}

static void a_point_is_the_name_without_its_layer(void)
{
	static const struct {
		const char *name, *point;
		int         layer;
	} is[] = {
		{ "layer3.q_rope", "q_rope", 3 },
		{ "layer3.q_rope", "q_rope", -1 },
		{ "logits", "logits", -1 },
		{ "model.norm", "model.norm", -1 },
		{ "model.layers.3.q", "model.layers.3.q", -1 },
		{ "block3.q", "q", 3 }, /* the file states the layer */
		{ "q-3", "q-3", 3 },
	};

	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		const vn_checkpoint p = { .name = is[i].name, .layer = is[i].layer };
		CU_ASSERT_STRING_EQUAL(vn_point_of(&p), is[i].point);
	}
}

static void words_of_allow_are_checked(void)
{
	unsigned set = 0;
	CU_ASSERT_PTR_NULL(vn_allow_parse("token_ids,missing", &set));
	CU_ASSERT_EQUAL(set, VN_ALLOW_TOKEN_IDS | VN_ALLOW_MISSING);
	for (const char *word = vn_allow_names; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL) {
		char one[40];
		snprintf(one, sizeof one, "%.*s", (int)strcspn(word, "|"), word);
		CU_ASSERT_PTR_NULL(vn_allow_parse(one, &set)); /* each that is offered is known */
	}
	CU_ASSERT_STRING_EQUAL(vn_allow_parse("missing,everything", &set), "everything");
	CU_ASSERT_PTR_NOT_NULL(vn_allow_parse("miss", &set));
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_value_just_beyond_its_limit_is_seen_to_be),
		TEST(json_says_the_same_and_knows_no_nan),
		TEST(the_values_shown_are_those_around_the_worst_element),
		TEST(the_text_names_origin_values_and_rule),
		TEST(a_document_without_memory_is_none),
		TEST(a_point_is_the_name_without_its_layer),
		TEST(words_of_allow_are_checked),
		CU_TEST_INFO_NULL,
	};
	return run_faulty("reports", tests);
}
