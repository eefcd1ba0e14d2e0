/* fuzz_weights.c: any two tables of weights: compared without a crash, every weight counted once,
 * every row of the result with words; with numbers for the reference and without. */
#include "compare/weights/weights_report.h"
#include "compare/weights/weights.h"
#include "tests/fuzz/mutate.h"

#include <math.h>
#include <stdbool.h>

enum { MOST = 24, NUMBERS = 1 << 14 };

static const char *const names[] = {
	"model.layers.0.self_attn.q_proj.weight",
	"model.layers.1.self_attn.q_proj.weight",
	"model.layers.0.self_attn.k_proj.bias",
	"model.layers.0.mlp.gate_proj.weight",
	"model.layers.0.mlp.up_proj.weight",
	"model.layers.1.mlp.gate_up_proj.weight",
	"lm_head.weight",
	"model.layers.0.self_attn.q_norm.weight",
	"transformer.h.2.attn.c_attn.weight",
	"model.layers.3.linear_attn.in_proj_qkv.weight",
	"model.layers.3.linear_attn.conv1d.weight",
	"model.layers.3.linear_attn.A_log",
	"model.layers.3.linear_attn.out_proj.weight",
	"model.layers.99999999999.self_attn.qkv_proj.weight",
	"layers.",
	"model.embed_tokens.weight",
	"h.1.",
	".bias",
	"\x1b|`<",
	"model.layers.3.linear_attn.in_proj_z.weight",
	"model.layers.0.self_attn.k_proj.weight",
	"model.layers.0.self_attn.v_proj.weight",
	"model.language_model.layers.0.self_attn.qkv_proj.weight",
	"model.layers.0.mlp.gate_up_proj.weight",
	"layers.0.mlp.up_proj.weight",
};

typedef struct input {
	const uint8_t *data;
	size_t         n;
} input;

static unsigned take_byte(input *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->data++;
}

static double take_number(input *in)
{
	static const double odd[] = { 0, 1, -1, 65504, 1e300, 1e-300 };
	const unsigned      b = take_byte(in);
	return b < 6 ? odd[b] : b == 6 ? NAN : b == 7 ? -INFINITY : ldexp((double)b - 128.0, (int)take_byte(in) % 24 - 16);
}

static int compare_row_names(const void *a, const void *b)
{
	return strcmp(((const vn_weight_row *)a)->name, ((const vn_weight_row *)b)->name);
}

/* Makes rows with different names, and with sizes that fit the memory below. */
static int table(input *in, vn_weight_row row[MOST])
{
	static const int64_t sizes[] = { 0, 1, 2, 3, 4, 6, 8, 12, 24, 32, 64, 96 };
	bool                 used[sizeof names / sizeof *names] = { false };
	int                  n = 0;

	for (int want = (int)(take_byte(in) % MOST); want > 0; want--) {
		const size_t   name = take_byte(in) % (sizeof names / sizeof *names);
		vn_weight_row *r = &row[n];
		if (used[name])
			continue;
		used[name] = true;
		*r = (vn_weight_row) { .name = names[name],
			                   .dtype = (vn_dtype)(take_byte(in) % VN_N_WEIGHT_DTYPES),
			                   .shape.rank = (int)(take_byte(in) % 4) };
		for (int i = 0; i < r->shape.rank; i++)
			r->shape.dim[i] = sizes[take_byte(in) % (i ? 12 : 10)] % (i > 1 ? 5 : 97);
		const unsigned d = take_byte(in);
		if (d)
			memset(r->digest.hex, "0123456789abcdef"[d % 4], 32);
		r->stats = (vn_stats) { .n = vn_shape_count(&r->shape),
			                    .nan = take_byte(in) % 3,
			                    .inf = take_byte(in) % 3,
			                    .min = take_number(in),
			                    .max = take_number(in),
			                    .mean = take_number(in),
			                    .rms = take_number(in) };
		r->stats.absmax = fmax(-r->stats.min, r->stats.max);
		n++;
	}
	qsort(row, (size_t)n, sizeof *row, compare_row_names);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool    filled;
	static float   numbers[NUMBERS];
	vn_weight_row  row[2][MOST];
	vn_tensor      at[2][MOST];
	input          in = { data, size };
	const unsigned how = take_byte(&in);
	vn_weight_side side[2] = { { 0 } };

	for (int i = 0; !filled && i < NUMBERS; i++)
		numbers[i] = (float)((i * 37) % 251) - 100.0f;
	filled = true;
	for (int k = 0; k < 2; k++) {
		side[k].row = row[k];
		side[k].n = table(&in, row[k]);
		for (int i = 0; i < side[k].n; i++) {
			const size_t count = (size_t)vn_shape_count(&row[k][i].shape);
			const bool   fits = count && count % vn_dtype_block(row[k][i].dtype) == 0 &&
			                  vn_dtype_bytes(row[k][i].dtype, count) <= sizeof numbers;
			at[k][i] = (vn_tensor) { row[k][i].dtype, row[k][i].shape, fits && take_byte(&in) % 4 ? numbers : NULL };
		}
		side[k].numbers = how >> k & 1 ? at[k] : NULL;
	}
	if (side[0].n == 0 || side[1].n == 0)
		return 0;
	vn_weights *w = vn_weights_compare(&side[0], &side[1], 1);
	int         both = 0, told = 0;
	for (int i = 0; i < w->n_found; i++)
		both += w->found[i].row[0] != NULL;
	for (int i = 0; i < w->n_lines; i++) {
		char text[VN_WEIGHT_SAYS];
		told += w->line[i].n;
		if (!*vn_weight_line_says(w, &w->line[i], text) || !*vn_weight_line_proof(w, &w->line[i]) ||
		    !w->found[w->line[i].first].kind)
			abort(); /* not an assert: release builds have none */
	}
	if (both + w->same + w->rounded != side[0].n || told != w->n_found)
		abort(); /* one was lost */
	json_decref(vn_weights_json(w));
	vn_weights_free(w);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char seed[] = "\x03\x0a"
						   "\x19\x02\x02\x08\x08\x05\x03\x03"
						   "\xc1\x08\x41\x08\x81\x10"
						   "\x01\x02\x02\x07\x09\x06\x03\x03"
						   "\xc1\x08\x41\x08\x81\x10"
						   "\x03\x01\x02\x0a\x08\x01\x03\x03"
						   "\xc1\x08\x42\x08\x81\x10"
						   "\x08\x02\x02\x08\x0a\x02\x03\x03"
						   "\xc1\x08\x41\x09\x81\x10\x01\x01\x01\x01\x01\x01"
						   "\x06\x0a"
						   "\x19\x02\x02\x08\x08\x07\x03\x03"
						   "\xc1\x08\x41\x08\x81\x10"
						   "\x01\x0f\x02\x07\x09\x06\x03\x03"
						   "\xc1\x08\x41\x08\x81\x10"
						   "\x03\x01\x02\x08\x0a\x03\x03\x03"
						   "\xc1\x08\x42\x08\x81\x10"
						   "\x08\x0d\x02\x08\x0a\x02\x03\x03"
						   "\xc1\x08\x41\x09\x81\x10\x01\x01\x01\x01\x01\x01";
/* The second: any bytes. */
static size_t     make_seed(int i, uint8_t *out)
{
	uint64_t r = 1;

	memcpy(out, seed, sizeof seed - 1);
	for (size_t k = 0; i && k < 600; k++)
		out[k] = (uint8_t)fuzz_random(&r);
	return i ? 600 : sizeof seed - 1;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 2, NULL, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
