/* plan_help.h: the plan of a small Qwen2, for the tests of plans. */
#pragma once

#include "libref/family/family.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 32, D = 16, F = 24, L = 2, H = 4, G = 2, K = 4 };

static inline vn_plan *toy(void)
{
	json_t *o = json_loads(
		"{\"model_type\":\"qwen2\",\"vocab_size\":32,\"hidden_size\":16,\"intermediate_size\":24,"
		"\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"max_position_embeddings\":64,"
		"\"tie_word_embeddings\":true}",
		0, NULL);
	vn_plan *p = NULL;
	vn_error e;

	CU_ASSERT_EQUAL_FATAL(vn_family_qwen2.plan("c", o, &p, &e), VN_OK);
	json_decref(o);
	return p;
}
