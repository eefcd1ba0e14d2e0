/* test_limits.c: the limits language: its meaning, and the position of each error. */
#include "compare/limits/limits.h"
#include "tests/support/suite.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static vn_limits *parse(const char *text)
{
	vn_limits      *l = NULL;
	vn_error        err = { "" };
	const vn_status st = vn_limits_parse("t.yaml", text, strlen(text), &l, &err);
	CU_ASSERT_EQUAL(st, VN_OK);
	if (st)
		printf("\n    %s\n", err.text);
	return l;
}

/* Checks that the file is refused with a text that contains `what`, which starts with
 * line:column. */
static void refused_bytes(const char *text, size_t n, const char *what)
{
	vn_limits *l = NULL;
	vn_error   err = { "" };
	CU_ASSERT_NOT_EQUAL(vn_limits_parse("t.yaml", text, n, &l, &err), VN_OK);
	CU_ASSERT_PTR_NULL(l);
	if (!strstr(err.text, what)) {
		printf("\n    got '%s', wanted '%s'\n", err.text, what);
		CU_FAIL("another complaint");
	}
	vn_limits_destroy(l);
}

static void refused(const char *text, const char *what)
{
	refused_bytes(text, strlen(text), what);
}

static vn_limit limit_of(vn_limits *l, const char *name, vn_form form, vn_metric m)
{
	vn_limit_set set;
	vn_limits_for(l, name, &set);
	return set.limit[form][m];
}

static void the_last_rule_that_matches_wins_key_by_key(void)
{
	vn_limits *l = parse("version: 1\n"
	                     "defaults: { nmse: 1.0e-3, cosine: 0.9 }\n"
	                     "rules:\n"
	                     "  - { match: 'layer*.q_rope', nmse: 1.0e-5, why: first }\n"
	                     "  - { match: 'layer3.*', nmse: 2.0e-5, why: second }\n"
	                     "  - { match: 'layer3.*', max_abs: 7, why: third }\n");
	CU_ASSERT_EQUAL(limit_of(l, "logits", VN_PLAIN, VN_M_NMSE).value, 1e-3);
	CU_ASSERT_EQUAL(limit_of(l, "layer1.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-5);
	const vn_limit nmse = limit_of(l, "layer3.q_rope", VN_PLAIN, VN_M_NMSE);
	CU_ASSERT_EQUAL(nmse.value, 2e-5);
	CU_ASSERT_EQUAL(nmse.line, 5);
	CU_ASSERT_STRING_EQUAL(nmse.rule->match, "layer3.*");
	CU_ASSERT_EQUAL(limit_of(l, "layer3.q_rope", VN_PLAIN, VN_M_COSINE).value, 0.9);
	CU_ASSERT_EQUAL(limit_of(l, "layer3.q_rope", VN_PLAIN, VN_M_MAX_ABS).value, 7.0);
	CU_ASSERT_PTR_NULL(limit_of(l, "layer1.q_rope", VN_PLAIN, VN_M_MAX_ABS).rule);
	CU_ASSERT_STRING_EQUAL(limit_of(l, "layer1.q_rope", VN_PLAIN, VN_M_NMSE).rule->why, "first");
	vn_limits_destroy(l);
}

static void defaults_come_before_rules_wherever_they_stand(void)
{
	vn_limits *l = parse("rules: [ { match: a, nmse: 1, why: w } ]\ndefaults: { nmse: 2 }\nversion: 1\n");
	CU_ASSERT_EQUAL(limit_of(l, "a", VN_PLAIN, VN_M_NMSE).value, 1.0);
	CU_ASSERT_EQUAL(limit_of(l, "b", VN_PLAIN, VN_M_NMSE).value, 2.0);
	vn_limits_destroy(l);
}

static void a_limit_can_be_lifted_again(void)
{
	vn_limits *l = parse("version: 1\ndefaults: { nmse: 1.0e-3 }\nrules: [ { match: x, nmse: none, why: w } ]\n");
	CU_ASSERT_PTR_NULL(limit_of(l, "x", VN_PLAIN, VN_M_NMSE).rule);
	CU_ASSERT_PTR_NOT_NULL(limit_of(l, "y", VN_PLAIN, VN_M_NMSE).rule);
	vn_limits_destroy(l);
}

static void a_limit_goes_by_depth_from_the_first_layer_to_the_last(void)
{
	vn_limits *l = parse(
		"version: 1\ndefaults:\n  nmse: { first: 1.0e-6, last: 1.0e-2 }\n"
		"  cosine: { last: 0.99, first: 0.9999 }\n  without_floor: { rmse: { first: 4, last: 1 } }\n"
		"rules: [ { match: layer1.v_proj, nmse: 5, why: w }, { match: layer2.v_proj, nmse: { first: 1, last: 1 }, why: "
		"w } ]\n");
	l->layers = 5;
	CU_ASSERT_EQUAL(limit_of(l, "embed", VN_PLAIN, VN_M_NMSE).value, 1e-6);
	CU_ASSERT_EQUAL(limit_of(l, "layer0.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(limit_of(l, "layer1.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-5, 1e-19);
	CU_ASSERT_DOUBLE_EQUAL(limit_of(l, "layer3.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-3, 1e-17);
	CU_ASSERT_EQUAL(limit_of(l, "layer4.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-2);
	CU_ASSERT_EQUAL(limit_of(l, "layer9.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-2);
	CU_ASSERT_EQUAL(limit_of(l, "logits", VN_PLAIN, VN_M_NMSE).value, 1e-2);
	CU_ASSERT_EQUAL(limit_of(l, "layered", VN_PLAIN, VN_M_NMSE).value, 1e-2);
	CU_ASSERT_EQUAL(limit_of(l, "layer1.v_proj", VN_PLAIN, VN_M_NMSE).value, 5.0);
	CU_ASSERT_EQUAL(limit_of(l, "layer2.v_proj", VN_PLAIN, VN_M_NMSE).value, 1.0);
	CU_ASSERT_DOUBLE_EQUAL(limit_of(l, "layer2.q_rope", VN_PLAIN, VN_M_COSINE).value, 0.999, 1e-15);
	CU_ASSERT_EQUAL(limit_of(l, "layer4.q_rope", VN_PLAIN, VN_M_COSINE).value, 0.99);
	CU_ASSERT_DOUBLE_EQUAL(limit_of(l, "layer2.q_rope", VN_WITHOUT_FLOOR, VN_M_RMSE).value, 2.0, 1e-15);
	l->layers = 1;
	CU_ASSERT_EQUAL(limit_of(l, "layer0.q_rope", VN_PLAIN, VN_M_NMSE).value, 1e-2);
	vn_limits_destroy(l);
}

static void a_limit_by_depth_has_both_ends_and_a_way_between_them(void)
{
	refused("version: 1\ndefaults: { nmse: { first: 1 } }\n", "t.yaml:2:19: nmse: a limit by depth lacks last");
	refused("version: 1\ndefaults: { nmse: { last: 1 } }\n", "t.yaml:2:19: nmse: a limit by depth lacks first");
	refused("version: 1\ndefaults: { nmse: {} }\n", "t.yaml:2:19: nmse: a limit by depth lacks first");
	refused("version: 1\ndefaults: { nmse: { first: 1, middle: 2, last: 1 } }\n",
	        "t.yaml:2:31: nmse: unknown key 'middle'");
	refused("version: 1\ndefaults: { nmse: { first: 1, first: 2 } }\n", "t.yaml:2:31: nmse: first twice");
	refused("version: 1\ndefaults: { nmse: { first: 0, last: 2 } }\n",
	        "t.yaml:2:28: nmse: first: a limit by depth cannot reach 0");
	refused("version: 1\ndefaults: { cosine: { first: 1, last: 0.9 } }\n",
	        "t.yaml:2:30: cosine: first: a limit by depth cannot reach 1");
	refused("version: 1\ndefaults: { nmse: { first: none, last: 2 } }\n", "t.yaml:2:28: nmse: 'none' is not a number");
	refused("version: 1\ndefaults: { nmse: { first: [1], last: 2 } }\n", "t.yaml:2:28: nmse must be one value");
	refused("version: 1\ndefaults: { kl_mean: { first: 1, last: 2 } }\n", "t.yaml:2:22: kl_mean: logits come after");
	refused("version: 1\ndefaults: { why: { first: 1, last: 2 } }\n", "t.yaml:2:18: why must be one value");
	refused("version: 1\ndefaults: { nmse: { first: 1, last: 2 }, nmse: 3 }\n", "t.yaml:2:48: nmse twice in one rule");
}

static void forms_of_a_metric_are_kept_apart(void)
{
	vn_limits *l = parse("version: 1\ndefaults:\n  nmse_over_floor: 4\n  without_floor: { nmse: 2.0e-3 }\n  nmse: 0.5\n"
	                     "  missing: allowed\n");
	vn_limit_set set;
	CU_ASSERT_EQUAL(limit_of(l, "x", VN_OVER_FLOOR, VN_M_NMSE).value, 4.0);
	CU_ASSERT_EQUAL(limit_of(l, "x", VN_WITHOUT_FLOOR, VN_M_NMSE).value, 2e-3);
	CU_ASSERT_EQUAL(limit_of(l, "x", VN_PLAIN, VN_M_NMSE).value, 0.5);
	vn_limits_for(l, "x", &set);
	CU_ASSERT_PTR_NOT_NULL(set.permission[VN_PERMIT_MISSING]);
	CU_ASSERT_PTR_NULL(set.permission[VN_PERMIT_EXTRA]);
	vn_limits_destroy(l);
}

static void each_form_of_a_metric_rests_on_its_own_reason(void)
{
	vn_limits *l = parse(
		"version: 1\ndefaults:\n  nmse_over_floor: 4\n  without_floor: { nmse: 2.0e-3, cosine: 0.9 }\n  why: all\n"
		"  why_of: { nmse: a number, nmse_over_floor: a multiple }\n");
	const vn_rule *r = l->rule[0];
	CU_ASSERT_STRING_EQUAL(vn_rule_why(r, VN_OVER_FLOOR, VN_M_NMSE), "a multiple");
	CU_ASSERT_STRING_EQUAL(vn_rule_why(r, VN_WITHOUT_FLOOR, VN_M_NMSE), "a number");
	CU_ASSERT_STRING_EQUAL(vn_rule_why(r, VN_PLAIN, VN_M_NMSE), "a number");
	CU_ASSERT_STRING_EQUAL(vn_rule_why(r, VN_WITHOUT_FLOOR, VN_M_COSINE), "all");
	vn_limits_destroy(l);
	l = parse("version: 1\ndefaults: { nmse_over_floor: 4, nmse: 1.0e-3, why: all, why_of: { nmse: a number } }\n");
	CU_ASSERT_STRING_EQUAL(vn_rule_why(l->rule[0], VN_OVER_FLOOR, VN_M_NMSE), "all");
	vn_limits_destroy(l);
	refused("version: 1\ndefaults: { why_of: { nmse_over_floor: a, nmse_over_floor: b } }\n", "nmse_over_floor twice");
	refused("version: 1\ndefaults: { why_of: { cosine_over_floor: a } }\n",
	        "why_of: unknown metric 'cosine_over_floor'");
}

static void unknown_words_are_refused_where_they_stand(void)
{
	refused("version: 1\nrules:\n  - match: a\n    cosin: 0.9\n", "t.yaml:4:5: unknown key or metric 'cosin'");
	refused("version: 1\ndefaults:\n  cosine_over_floor: 2\n", "t.yaml:3:3: unknown key or metric 'cosine_over_floor'");
	refused("version: 1\ndefaults: { without_floor: { nmse_over_floor: 2 } }\n", "t.yaml:2:30: unknown key");
	refused("version: 1\nlimits: {}\n", "t.yaml:2:1: unknown key 'limits'");
	refused("version: 1\ndefaults: { match: a }\n", "t.yaml:2:13: unknown key or metric 'match'");
}

static void numbers_must_be_numbers_that_something_can_keep_to(void)
{
	refused("version: 1\ndefaults: { nmse: lots }\n", "t.yaml:2:19: nmse: 'lots' is not a number");
	refused("version: 1\ndefaults: { nmse: .nan }\n", "t.yaml:2:19: nmse: '.nan'");
	refused("version: 1\ndefaults: { nmse: .inf }\n", "t.yaml:2:19: nmse: '.inf'");
	refused("version: 1\ndefaults: { nmse: nan }\n", "'nan' is not a number");
	refused("version: 1\ndefaults: { nmse: 1e999 }\n", "not a finite number");
	refused("version: 1\ndefaults: { nmse: 0x10 }\n", "'0x10' is not a number");
	refused("version: 1\ndefaults: { nmse: 1e }\n", "'1e' is not a number");
	refused("version: 1\ndefaults: { nmse: '' }\n", "'' is not a number");
	refused("version: 1\ndefaults: { nmse: }\n", "'' is not a number");
	refused("version: 1\ndefaults: { nmse: -1 }\n", "t.yaml:2:19: nmse: -1 is below 0");
	refused("version: 1\ndefaults: { cosine: 1.5 }\n", "t.yaml:2:21: cosine: 1.5 is above 1");
	refused("version: 1\ndefaults: { nmse: [1] }\n", "t.yaml:2:19: nmse must be one value");
	refused("version: 1\ndefaults: { missing: perhaps }\n", "expected allowed or refused");
}

static void nothing_is_said_twice(void)
{
	refused("version: 1\nversion: 1\n", "t.yaml:2:1: version twice");
	refused("version: 1\ndefaults:\n  nmse: 1\n  nmse: 2\n", "t.yaml:4:9: nmse twice");
	refused("version: 1\nrules: [ { match: a, match: b } ]\n", "match twice");
	refused("version: 1\ndefaults: { missing: allowed, missing: refused }\n", "missing twice");
	refused("version: 1\n---\nversion: 1\n", "t.yaml:2:1: a second document");
}

static void rules_have_a_shape(void)
{
	refused("version: 1\nrules: [ { nmse: 1 } ]\n", "t.yaml:2:10: a rule without match");
	refused("version: 1\nrules:\n  - { match: a, nmse: 1, why: w }\n  - match: b\n    nmse: 1\n",
	        "t.yaml:4:5: a rule without why: state the reason of the limit");
	refused("version: 1\nrules: [ { match: a, nmse: 1, why: '' } ]\n", "t.yaml:2:10: a rule without why");
	refused("version: 1\nrules: [ { match: a, nmse: 1, why: ' ' } ]\n", "t.yaml:2:10: a rule without why");
	refused("version: 1\nrules: { match: a }\n", "t.yaml:2:8: rules must be a list");
	refused("version: 1\nrules: [ a ]\n", "t.yaml:2:10: expected a map");
	refused("version: 1\ndefaults: 3\n", "t.yaml:2:11: expected a map");
	refused("version: 1\nrules: [ { match: 'a{b' } ]\n", "t.yaml:2:19: match:");
	refused("- a\n", "t.yaml:1:1: expected a map that starts with version: 1");
	refused("", "t.yaml:1:1: empty");
	refused("defaults: {}\n", "no version");
	refused("version: 2\n", "t.yaml:1:10: version '2'");
}

static void what_yaml_can_do_beyond_the_language_is_refused(void)
{
	refused("version: 1\nname: &a x\n", "t.yaml:2:7: an anchor");
	refused("version: 1\nname: *a\n", "t.yaml:2:7: an alias");
	refused("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", "t.yaml:1:4: an anchor");
	refused("version: 1\nname: !!binary x\n", "t.yaml:2:7: a tag");
	refused("version: 1\ndefaults:\n\tnmse: 1\n", "t.yaml:3:1: not YAML");
	refused("version: 1\nname: 'x\n", "not YAML");
	refused("version: 1\nname: \xff\n", "t.yaml:2:7: not UTF-8");
	refused("version: 1\nname: \xc0\xaf\n", "t.yaml:2:7: not UTF-8");
	refused_bytes("version: 1\nname: \"a\\0b\"\n", strlen("version: 1\nname: \"a\\0b\"\n"),
	              "t.yaml:2:7: name holds a NUL");
	char deep[20000];
	memset(deep, '[', sizeof deep);
	refused_bytes(deep, sizeof deep, "t.yaml:1:1: expected a map that starts with version: 1");
	memcpy(deep, "version: 1\ndefaults: {nmse: ", 28);
	refused_bytes(deep, sizeof deep, "t.yaml:2:18: nmse must be one value");
}

static void limits_that_cannot_fail_are_warned_about(void)
{
	vn_limits *l = parse(
		"version: 1\ndefaults: { cosine: -1, nmse: 1, argmax_agreement: 0, norm_ratio: 0.1, headroom: 2,\n"
		"  nmse_over_floor: 0.5, rmse_over_floor: { first: 2, last: 1.0e+9 } }\n");
	CU_ASSERT_EQUAL(l->warnings.n, 6);
	CU_ASSERT_PTR_NOT_NULL(strstr(l->warnings.line[0], "t.yaml:2: cosine: -1 can never fail"));
	vn_limits_destroy(l);
	l = parse(
		"version: 1\ndefaults: { nonfinite: 1.0e+6, differing: 1.0e+15, kl_mean: 10, kl_p99: 50, kl_max: 50, max_abs: "
		"1.0e+9 }\n");
	CU_ASSERT_EQUAL_FATAL(l->warnings.n, 5); /* of max_abs it depends on the tensor */
	CU_ASSERT_PTR_NOT_NULL(strstr(l->warnings.line[2], "t.yaml:2: kl_mean: 10 lets unrelated logits pass"));
	vn_limits_destroy(l);
	l = parse(
		"version: 1\ndefaults: { nonfinite: 999999, differing: 9.0e+14, kl_mean: 9.9, kl_p99: 49, kl_max: 49 }\n");
	CU_ASSERT_EQUAL(l->warnings.n, 0);
	vn_limits_destroy(l);
	l = parse("version: 1\ndefaults: { scale: 0, worst_channel_scale: 1 }\n");
	CU_ASSERT_EQUAL_FATAL(l->warnings.n, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(l->warnings.line[0], "t.yaml:2: scale: 0 depends on"));
	CU_ASSERT_PTR_NOT_NULL(strstr(l->warnings.line[1], "t.yaml:2: worst_channel_scale: 1 lets a tensor of zeros pass"));
	vn_limits_destroy(l);
}

static void bitwise_is_no_limit_that_is_warned_about(void)
{
	vn_limits *l = NULL;
	vn_error   err;
	CU_ASSERT_EQUAL_FATAL(vn_limits_bitwise(&l, &err), VN_OK);
	CU_ASSERT_EQUAL(l->warnings.n, 0);
	CU_ASSERT_EQUAL(limit_of(l, "logits", VN_PLAIN, VN_M_DIFFERING).value, 0.0);
	CU_ASSERT_TRUE(limit_of(l, "logits", VN_PLAIN, VN_M_NONFINITE).value >= 1e15); /* equal NaNs are equal */
	vn_limits_destroy(l);
}

static void a_nan_keeps_to_no_limit(void)
{
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++)
			CU_ASSERT_FALSE(vn_limit_holds((vn_metric)m, (vn_form)f, 1.0, (double)NAN));
	CU_ASSERT_FALSE(vn_limit_holds(VN_M_NMSE, VN_OVER_FLOOR, 4.0, (double)INFINITY));
	CU_ASSERT_TRUE(vn_limit_holds(VN_M_NORM_RATIO, VN_PLAIN, 0.1, 0.95));
	CU_ASSERT_FALSE(vn_limit_holds(VN_M_NORM_RATIO, VN_PLAIN, 0.1, 0.85));
	CU_ASSERT_FALSE(vn_limit_holds(VN_M_NORM_RATIO, VN_PLAIN, 0.1, 1.15));
	CU_ASSERT_TRUE(vn_limit_holds(VN_M_COSINE, VN_PLAIN, 0.99, 0.99));
	CU_ASSERT_FALSE(vn_limit_holds(VN_M_COSINE, VN_PLAIN, 0.99, 0.98));
	CU_ASSERT_TRUE(vn_limit_holds(VN_M_ULP_MAX, VN_PLAIN, 0.0, 0.0));
}

/* ---- files ------------------------------------------------------------------ */

static char folder[] = "/tmp/vernier-limits-XXXXXX";

static void write_limits(const char *name, const char *text)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static vn_status read_limits(const char *name, vn_limits **l, vn_error *err)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	err->text[0] = 0;
	return vn_limits_read(path, l, err);
}

static void a_file_wins_over_what_it_extends(void)
{
	vn_limits *l;
	vn_error   err;
	write_limits(
		"base.yaml",
		"version: 1\ndefaults: { nmse: 1, cosine: 0.5 }\nrules: [ { match: logits, nmse: 2, kl_mean: 3, why: w } ]\n");
	write_limits(
		"own.yaml",
		"version: 1\nextends: base.yaml\ndefaults: { nmse: 4 }\nrules: [ { match: logits, kl_mean: 5, why: w } ]\n");
	CU_ASSERT_EQUAL_FATAL(read_limits("own.yaml", &l, &err), VN_OK);
	CU_ASSERT_EQUAL(limit_of(l, "x", VN_PLAIN, VN_M_NMSE).value, 4.0);
	CU_ASSERT_EQUAL(limit_of(l, "x", VN_PLAIN, VN_M_COSINE).value, 0.5);
	CU_ASSERT_EQUAL(limit_of(l, "logits", VN_PLAIN, VN_M_NMSE).value, 2.0); /* a rule is nearer than defaults */
	CU_ASSERT_EQUAL(limit_of(l, "logits", VN_PLAIN, VN_M_KL_MEAN).value, 5.0);
	const vn_rule *r = limit_of(l, "logits", VN_PLAIN, VN_M_NMSE).rule;
	CU_ASSERT_PTR_NOT_NULL(strstr(r->file, "base.yaml"));
	CU_ASSERT_EQUAL(r->line, 3);
	vn_limits_destroy(l);
}

static void circles_and_ways_out_of_the_folder_are_refused(void)
{
	vn_limits *l;
	vn_error   err;
	write_limits("a.yaml", "version: 1\nextends: b.yaml\n");
	write_limits("b.yaml", "version: 1\nextends: a.yaml\n");
	CU_ASSERT_NOT_EQUAL(read_limits("a.yaml", &l, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "a.yaml:2:10: extends:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "extends itself"));
	write_limits("out.yaml", "version: 1\nextends: ../../etc/passwd\n");
	CU_ASSERT_NOT_EQUAL(read_limits("out.yaml", &l, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "out.yaml:2:10: extends '../../etc/passwd'; expected the name of a file"));
	write_limits("gone.yaml", "version: 1\nextends: nowhere.yaml\n");
	CU_ASSERT_NOT_EQUAL(read_limits("gone.yaml", &l, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "gone.yaml:2:10: extends 'nowhere.yaml': no such file"));
	CU_ASSERT_NOT_EQUAL(read_limits("", &l, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not a regular file"));
	for (int i = 0; i < 12; i++) {
		char name[32], text[64];
		snprintf(name, sizeof name, "d%d.yaml", i);
		snprintf(text, sizeof text, "version: 1\nextends: d%d.yaml\n", i + 1);
		write_limits(name, text);
	}
	write_limits("d12.yaml", "version: 1\n");
	CU_ASSERT_NOT_EQUAL(read_limits("d0.yaml", &l, &err), VN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "more than 8 files deep"));
}

static void the_shipped_files_are_well_formed_and_doubt_nothing(void)
{
	static const char *const name[] = { "fp32",     "fp16-acc32", "fp16-acc16", "bf16", "q8_0",
		                                "q8_0-gdn", "q6_k",       "q5_k",       "q4_k" };
	setenv("VERNIER_SPECS", VERNIER_SOURCE "/specs", 1);
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		char       path[PATH_MAX], file[64];
		vn_limits *l = NULL;
		vn_error   err = { "" };
		snprintf(file, sizeof file, "%s.yaml", name[i]);
		CU_ASSERT_EQUAL(vn_limits_find(file, path, &err), VN_OK);
		CU_ASSERT_EQUAL_FATAL(vn_limits_read(path, &l, &err), VN_OK);
		CU_ASSERT_STRING_EQUAL(l->name, name[i]);
		CU_ASSERT_EQUAL(l->warnings.n, 0);
		for (int r = 0; r < l->n_rules; r++)
			CU_ASSERT_PTR_NOT_NULL(l->rule[r]->why);
		vn_limits_destroy(l);
	}
	vn_error err;
	char     path[PATH_MAX];
	setenv("VERNIER_SPECS", "/nowhere", 1);
	CU_ASSERT_EQUAL(vn_limits_find("fp32.yaml", path, &err), VN_ERR_NOTFOUND);
	unsetenv("VERNIER_SPECS");
}

static void the_coarsest_blocks_choose_the_file(void)
{
	/* clang-format off */
	static const struct { const char *format, *family, *file; } is[] = {
		{ "gguf Q8_0, F32", "qwen2", "q8_0.yaml" }, { "gguf Q6_K, F32", "llama", "q6_k.yaml" },
		  { "gguf Q6_K, Q8_0", NULL, "q6_k.yaml" },
		{ "gguf Q5_K, Q6_K, F32", "qwen3", "q5_k.yaml" }, { "gguf Q6_K, Q5_K", "qwen3", "q5_k.yaml" },
		{ "gguf Q4_K, Q6_K, F32", "llama", "q4_k.yaml" }, { "gguf Q5_0, Q4_K, Q8_0, F32", "qwen2", "q4_k.yaml" },
		{ "gguf Q8_0, F32", "qwen3_5_text", "q8_0-gdn.yaml" }, { "gguf Q6_K, F32", "qwen3_5_text", NULL },
		{ "gguf Q4_0, F32", "llama", NULL }, { "gguf Q5_K, Q4_0", "llama", NULL }, { "gguf Q5_1, Q8_0", "llama", NULL },
		  { "gguf Q6_K, Q5_0", "llama", NULL },
		{ "gguf F16, F32", "llama", NULL }, { "safetensors", "llama", NULL }, { "gguf", "llama", NULL },
		  { "gguf ", NULL, NULL },
		{ "gguf Q8_0x, F32", NULL, NULL }, { "gguf , ,", NULL, NULL },
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
		const char *file = vn_limits_of_blocks(is[i].format, is[i].family);
		CU_ASSERT(is[i].file ? file && strcmp(file, is[i].file) == 0 : !file);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(the_last_rule_that_matches_wins_key_by_key),
		TEST(defaults_come_before_rules_wherever_they_stand),
		TEST(a_limit_can_be_lifted_again),
		TEST(a_limit_goes_by_depth_from_the_first_layer_to_the_last),
		TEST(a_limit_by_depth_has_both_ends_and_a_way_between_them),
		TEST(forms_of_a_metric_are_kept_apart),
		TEST(each_form_of_a_metric_rests_on_its_own_reason),
		TEST(unknown_words_are_refused_where_they_stand),
		TEST(numbers_must_be_numbers_that_something_can_keep_to),
		TEST(nothing_is_said_twice),
		TEST(rules_have_a_shape),
		TEST(what_yaml_can_do_beyond_the_language_is_refused),
		TEST(limits_that_cannot_fail_are_warned_about),
		TEST(bitwise_is_no_limit_that_is_warned_about),
		TEST(a_nan_keeps_to_no_limit),
		TEST(a_file_wins_over_what_it_extends),
		TEST(circles_and_ways_out_of_the_folder_are_refused),
		TEST(the_shipped_files_are_well_formed_and_doubt_nothing),
		TEST(the_coarsest_blocks_choose_the_file),
		CU_TEST_INFO_NULL,
	};

	if (!mkdtemp(folder))
		return 1;
	const int failures = run_suite("limits", tests);
	char      command[PATH_MAX];
	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command) != 0 || failures;
}
