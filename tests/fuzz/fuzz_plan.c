/* fuzz_plan.c: any lines as the /plan of a checkpoint file.
 *
 * The input is text: a line with layers, vocab and context, then the nodes, an empty line, the
 * values, an empty line, the weights. A plan is refused with one line, or an engine can run it;
 * then it can be written and read again unchanged. */
#include "capture/file/plan_json.h"
#include "libref/exec/states.h"
#include "libref/family/family.h"
#include "tests/fuzz/mutate.h"

enum { LINES = 512 };

/* Cuts the text into lines, which point into it. Empty lines end the three lists. */
static void cut(char *text, vn_plan_text *t, char *line[3][LINES])
{
	int *n[3] = { &t->n_nodes, &t->n_values, &t->n_weights }, list = -1;

	for (char *p = text; p && list < 3;) {
		char *next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		if (list < 0) {
			if (sscanf(p, "%d %d %d", &t->layers, &t->vocab, &t->context) != 3)
				return;
			list = 0;
		} else if (!*p) {
			list++;
		} else if (*n[list] < LINES) {
			line[list][(*n[list])++] = p;
		}
		p = next;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *line[3][LINES];
	vn_plan_text t = { 0 }, again = { 0 };
	vn_plan     *p = NULL, *q = NULL;
	vn_error     e = { "" };
	vn_slots     s;
	char        *text = malloc(size + 1);

	if (!text)
		exit(2);
	memcpy(text, data, size);
	text[size] = '\0';
	cut(text, &t, line);
	t.node = line[0];
	t.value = line[1];
	t.weight = line[2];
	const vn_status st = vn_plan_from_text(&t, &p, &e);
	if (st ? p || !fuzz_one_line(e.text) : !p)
		abort();
	if (p) {
		if (vn_slots_assign(&s, p))
			vn_slots_finish(&s);
		if (vn_plan_to_text(p, &again, &e) || vn_plan_from_text(&again, &q, &e) || !vn_plan_equal(p, q))
			abort();
		vn_plan_text_free(&again);
	}
	vn_plan_destroy(p);
	vn_plan_destroy(q);
	free(text);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static size_t make_seed(int i, uint8_t *out)
{
	static const char *const families[] = { "qwen2", "qwen3", "gpt2", "llama", "qwen3_5_text" };
	const vn_family         *family;
	json_t *config = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "model_type", families[i],
	                           "vocab_size", 32, "hidden_size", 16, "intermediate_size", 24, "num_hidden_layers",
	                           i == 1 || i == 4 ? 2 : 1, "num_attention_heads", 4, "num_key_value_heads", 2,
	                           "max_position_embeddings", 64, "full_attention_interval", 2, "tie_word_embeddings", i);

	vn_plan     *p = NULL;
	vn_plan_text t = { 0 };
	vn_error     e;
	size_t       at;

	if (config && i == 3)
		json_object_set_new(config, "rope_scaling",
		                    json_pack("{s:s, s:i, s:[f,f], s:[f,f]}", "rope_type", "longrope", "factor", 4,
		                              "short_factor", 1.0, 1.5, "long_factor", 2.0, 4.1));
	if (!config || vn_family_find("seed", config, &family, &e) || family->plan("seed", config, &p, &e) ||
	    vn_plan_to_text(p, &t, &e))
		exit(2);
	at = (size_t)snprintf((char *)out, FUZZ_ROOM, "%d %d %d\n", t.layers, t.vocab, t.context);
	for (int list = 0; list < 3; list++) {
		char *const *line = list == 0 ? t.node : list == 1 ? t.value : t.weight;
		const int    n = list == 0 ? t.n_nodes : list == 1 ? t.n_values : t.n_weights;
		for (int k = 0; k < n; k++)
			at += (size_t)snprintf((char *)out + at, FUZZ_ROOM - at, "%s\n", line[k]);
		at += (size_t)snprintf((char *)out + at, FUZZ_ROOM - at, "\n");
	}
	vn_plan_text_free(&t);
	vn_plan_destroy(p);
	json_decref(config);
	return at;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 5, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
