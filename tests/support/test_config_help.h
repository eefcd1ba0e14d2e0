/* test_config_help.h: helpers of the tests of config.json and of the model families.
 *
 * The tests check a config by its plan: sizes in the shapes, RoPE and windows in the constants. */
#pragma once

#include "libref/family/config.h"
#include "libref/family/family.h"

#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static inline json_t *json(const char *text)
{
	json_t *j = json_loads(text, 0, NULL);

	if (!j)
		fprintf(stderr, "the test's own JSON is broken: %s\n", text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	return j;
}

/* The plan of the family whose page the helpers below use; NULL: Qwen2. */
static vn_status (*page)(const char *, const json_t *, vn_plan **, vn_error *) = NULL;

/* A plan of a small model with these fields put in or replaced; NULL: refused. */
static inline vn_plan *plan(const char *fields, vn_status *st, vn_error *e)
{
	json_t     *base = json("{\"model_type\":\"qwen2\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,"
	                            "\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
	                            "\"max_position_embeddings\":64}");
	json_t     *more = json(fields), *value;
	vn_plan    *p = NULL;
	const char *key;

	json_object_foreach(more, key, value)
	{
		if (json_is_string(value) && strcmp(json_string_value(value), "(absent)") == 0)
			json_object_del(base, key);
		else
			json_object_set(base, key, value);
	}
	e->text[0] = '\0';
	*st = (page ? page : vn_family_qwen2.plan)("c.json", base, &p, e);
	json_decref(base);
	json_decref(more);
	return p;
}

static inline void refused(const char *fields, vn_status want, const char *word)
{
	vn_status  st;
	vn_error   e;
	vn_plan   *p = plan(fields, &st, &e);
	const bool named = strstr(e.text, "c.json") && strstr(e.text, word);

	CU_ASSERT_EQUAL(st, want);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT(named);
	if (st != want || !named)
		fprintf(stderr, "%s: status %d, wanted '%s', have '%s'\n", fields, (int)st, word, e.text);
	vn_plan_destroy(p);
}

static inline vn_plan *accepted(const char *fields)
{
	vn_status st;
	vn_error  e;
	vn_plan  *p = plan(fields, &st, &e);

	if (st)
		fprintf(stderr, "%s: refused: %s\n", fields, e.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	return p;
}

static inline const vn_node *node_of(const vn_plan *p, const char *name)
{
	return &p->node[p->value[vn_plan_find(p, name)].node];
}

static inline int width(const vn_plan *p, const char *name, int axis)
{
	return p->value[vn_plan_find(p, name)].size[axis];
}

static inline void windows(const char *fields, int w0, int w1, int w2, int w3)
{
	vn_plan  *p = accepted(fields);
	const int want[] = { w0, w1, w2, w3 };
	char      name[64];

	for (int l = 0; l < 4; l++) {
		snprintf(name, sizeof name, "layer%d.attn_context", l);
		CU_ASSERT_EQUAL(node_of(p, name)->c.attention.window, want[l]);
	}
	vn_plan_destroy(p);
}
