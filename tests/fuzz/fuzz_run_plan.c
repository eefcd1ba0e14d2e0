/* fuzz_run_plan.c: any bytes as the lines of /plan/nodes of a run: refused in one line, or a plan
 * whose names are found and whose nodes read what is made before them. */
#include "capture/recording/run_plan.h"
#include "tests/fuzz/mutate.h"

enum { MOST = 64 };

static int cut_lines(char *text, char *line[MOST])
{
	int n = 0;

	for (char *p = strtok(text, "\n"); p && n < MOST; p = strtok(NULL, "\n"))
		line[n++] = p;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char        *text = malloc(size + 1), *line[MOST];
	vn_run_plan *plan = NULL;
	vn_error     err = { "" };

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (vn_run_plan_read(line, cut_lines(text, line), &plan, &err)) {
		if (plan || !fuzz_one_line(err.text))
			abort();
		free(text);
		return 0;
	}
	for (int i = 0; i < plan->n_values; i++)
		if (vn_run_plan_value(plan, plan->value[i].step, plan->value[i].name) != i || plan->value[i].node >= plan->n)
			abort();
	for (int i = 0; i < plan->n; i++)
		for (int k = 0; k < plan->node[i].n_in; k++)
			if (plan->value[plan->in[plan->node[i].first_in + k]].node > i)
				abort();
	vn_run_plan_free(plan);
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"{\"op\": \"Embedding\", \"path\": \"embed\", \"step\": 0, \"out\": [\"embed\"],"
	"\"in\": [{\"input\": \"in.ids\"}]}\n"
	"{\"op\": \"mul\", \"path\": \"\", \"step\": 0, \"out\": [\"mul.0\"], \"in\": [{\"from\": \"embed\"}]}\n"
	"{\"step\": 1, \"same_as\": 0}",
	"{\"op\": \"a\", \"path\": \"a\", \"step\": 0, \"out\": [\"a\", \"a:1\", null], \"in\": []}\n"
	"{\"op\": \"b\", \"path\": \"b\", \"step\": 2, \"out\": [\"b\"], \"in\": [{\"from\": \"a:1\", \"back\": 2}]}",
};

int main(int argc, char **argv)
{
	return fuzz_texts(argc, argv, seeds, sizeof seeds / sizeof *seeds);
}
#endif
