/* test_sequence.c: the execution order of checkpoints that do not record it
 * (capture/recording/sequence.h). */
#include "capture/recording/sequence.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 32 };

/* "name" or "name@said", separated by blanks, whatever order they come in. */
static int read(const char *text, char name[MOST][40], vn_sequence_entry *x)
{
	int n = 0;
	for (const char *p = text; *p; n++) {
		const size_t k = strcspn(p, " ");
		snprintf(name[n], sizeof name[n], "%.*s", (int)k, p);
		char *at = strchr(name[n], '@');
		x[n] = (vn_sequence_entry) { .name = name[n], .point = "", .layer = -1, .said = at ? atoi(at + 1) : -1 };
		if (at)
			*at = '\0';
		p += k + (p[k] == ' ');
	}
	return n;
}

static void check(const char *given, const char *expected)
{
	char              name[MOST][40], want[MOST][40];
	vn_sequence_entry x[MOST], y[MOST];
	int               order[MOST];
	const int         n = read(given, name, x), m = read(expected, want, y);

	CU_ASSERT_EQUAL_FATAL(n, m);
	CU_ASSERT_EQUAL_FATAL(vn_sequence(x, n, order, NULL), VN_OK);
	for (int i = 0; i < n; i++) {
		if (strcmp(name[order[i]], want[i]) != 0)
			fprintf(stderr, "%s: %s at %d, expected %s\n", given, name[order[i]], i, want[i]);
		CU_ASSERT_STRING_EQUAL(name[order[i]], want[i]);
	}
}

static void names_alone_tell_layers_and_points(void)
{
	check("final_norm layer10.q_proj layer2.attn_context layer2.q_proj embed logits layer10.attn_norm",
	      "embed layer2.q_proj layer2.attn_context layer10.attn_norm layer10.q_proj final_norm logits");
	check("layer1.input layer0.output layer0.mine layer0.input embed layer0.down_proj",
	      "embed layer0.input layer0.down_proj layer0.output layer0.mine layer1.input");
}

static void numbers_in_foreign_names_are_numbers(void)
{
	check("blk.10.q blk.2.q output embed", "embed blk.2.q blk.10.q output");
}

static void what_is_said_comes_first_and_the_rest_is_put_between(void)
{
	check("layer0.q_proj@7 layer0.attn_norm@9 embed@30", "layer0.q_proj layer0.attn_norm embed");
	check("logits@9 layer0.v_proj layer0.q_proj@2 layer0.output@5 embed layer1.q_proj",
	      "embed layer0.q_proj layer0.v_proj layer0.output layer1.q_proj logits");
	/* A checkpoint without an order comes after the last recorded one that precedes it, even if the
	 * recorded order is not the plan's. */
	check("layer0.output@1 layer0.attn_norm@2 layer0.mlp_norm", "layer0.output layer0.attn_norm layer0.mlp_norm");
	check("layer5.output@1 layer0.attn_norm@2 layer7.output@3 layer6.q_proj layer0.embed",
	      "layer5.output layer0.attn_norm layer0.embed layer6.q_proj layer7.output");
}

static void steps_come_first_and_second_names_behind(void)
{
	vn_sequence_entry x[] = {
		{ .name = "embed", .point = "", .step = 1, .layer = -1, .said = 0 },
		{ .name = "layer1.input", .point = "output", .step = 0, .layer = 0, .said = 4, .second = true },
		{ .name = "layer0.output", .point = "output", .step = 0, .layer = 0, .said = 4 },
		{ .name = "blk.1.norm", .point = "attn_norm", .step = 0, .layer = 1, .said = -1 },
		{ .name = "layer0.q_proj", .point = "", .step = 0, .layer = 0, .said = -1 },
	};
	static const int expected[] = { 4, 2, 1, 3, 0 };
	int              order[5];
	CU_ASSERT_EQUAL_FATAL(vn_sequence(x, 5, order, NULL), VN_OK);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(order[i], expected[i]);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(names_alone_tell_layers_and_points),
		TEST(numbers_in_foreign_names_are_numbers),
		TEST(what_is_said_comes_first_and_the_rest_is_put_between),
		TEST(steps_come_first_and_second_names_behind),
		CU_TEST_INFO_NULL,
	};
	return run_suite("sequence", tests);
}
