/* fuzz_toggles.c: any words behind --force-ref and --precision, on a small model.
 *
 * Input: globs separated by commas and, after an empty line, a precision at a glob
 * ("f32@layer0.*"). The globs joined again are the text. A glob is refused with one line and
 * changes nothing, or selects exactly the nodes that make a checkpoint with a matching name. */
#include "capture/run/hybrid.h"
#include "libref/base/glob.h"
#include "libref/model/model.h"
#include "tests/fuzz/mutate.h"

static const vn_plan *plan;

static void prepare(void)
{
	static vn_model *m;
	if (!plan && vn_model_open(VERNIER_SOURCE "/fixtures/gpt2-trained", &m, NULL))
		exit(2);
	plan = vn_model_plan(m);
}

/* Does a checkpoint of the node have a matching name? Second names count only if no first name
 * matches. */
static bool speaks_of(const char *glob, int node, bool second)
{
	for (int v = 0; v < plan->n_values; v++)
		if (plan->value[v].node == node && (plan->value[v].alias_of >= 0) == second &&
		    vn_glob_match(glob, plan->value[v].name))
			return true;
	return false;
}

static void check_match(const char *glob)
{
	static bool node[4096];
	vn_error    e = { "" };
	int         hits[2] = { 0, 0 };

	MUST(plan->n_nodes <= 4096);
	memset(node, 0, sizeof node);
	const vn_status st = vn_toggles_match(plan, glob, node, &e);
	for (int second = 0; second < 2; second++)
		for (int i = 0; i < plan->n_nodes; i++)
			hits[second] += speaks_of(glob, i, second);
	for (int i = 0; i < plan->n_nodes; i++)
		MUST(node[i] == (!st && speaks_of(glob, i, !hits[0])));
	MUST(st ? fuzz_one_line(e.text) && (vn_glob_check(glob, NULL) || !(hits[0] + hits[1])) : hits[0] + hits[1] > 0);
}

static void check_split(const char *text)
{
	char        *copy = fuzz_text((const uint8_t *)text, strlen(text));
	const char **list;
	int          n;
	size_t       at = 0;

	list = vn_toggles_split(copy, &n);
	MUST((n > 0) == (*text != '\0'));
	for (int i = 0; i < n; i++) { /* put together they are the text */
		const size_t length = strlen(list[i]);
		MUST(strncmp(text + at, list[i], length) == 0 && text[at + length] == (i < n - 1 ? ',' : '\0'));
		at += length + 1;
		if (i < 3)
			check_match(list[i]);
	}
	free(list);
	free(copy);
}

static void check_precision(const char *text)
{
	static vn_policy policy[4096];
	const vn_policy  before = { VN_F64, VN_BF16, VN_PRODUCTS_GGML, { 0 } }; /* that of no name */
	vn_policy        want = before;
	char             word[32] = "";
	const char      *at = strchr(text, '@');
	vn_error         e = { "" };
	int              set = 0;

	for (int i = 0; i < plan->n_nodes; i++)
		policy[i] = before;
	const vn_status st = vn_toggles_precision(plan, text, policy, &e);
	if (at && at - text < 32)
		memcpy(word, text, (size_t)(at - text));
	MUST(st ? fuzz_one_line(e.text) : vn_policy_from_name(word, &want));
	for (int i = 0; i < plan->n_nodes; i++) {
		set += !vn_policy_same(policy[i], before);
		MUST(vn_policy_same(policy[i], before) || vn_policy_same(policy[i], want));
	}
	MUST(!st == (set > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *line = strchr(text, '\n');

	prepare();
	if (line)
		*line++ = '\0';
	check_split(text);
	check_precision(line ? line : text);
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
int main(int argc, char **argv)
{
	static const char *const seeds[] = { "layer0.*,logits\nf32@layer0.*", "layer1.{q,k}_proj,{a,b}\nf16-acc16@*",
		                                 "layer1.input,,\nbf16@layer1.input", "}{,{,\n@", "nothing\nf99@*" };

	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
