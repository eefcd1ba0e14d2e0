/* weights_names.c: the part a weight plays, by its name in a HuggingFace directory. */
#include "compare/weights/weights_names.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first of these words that occurs in the name after the layer counts. */
/* clang-format off */
static const struct {
	const char *word;
	vn_weight_part     part;
} parts[] = {
	{ "qkv_proj.", VN_PART_QKV }, { "q_proj.", VN_PART_Q }, { "k_proj.", VN_PART_K }, { "v_proj.", VN_PART_V },
	  { "o_proj.", VN_PART_O },
	{ "gate_up_proj.", VN_PART_GATE_UP }, { "gate_proj.", VN_PART_GATE }, { "up_proj.", VN_PART_UP },
	  { "down_proj.", VN_PART_DOWN },
	{ "q_norm.", VN_PART_NORM_Q }, { "k_norm.", VN_PART_NORM_K }, { "post_attention_layernorm.", VN_PART_NORM_POST },
	{ "input_layernorm.", VN_PART_NORM_IN }, { "attn.c_attn.", VN_PART_C_ATTN }, { "attn.c_proj.", VN_PART_O },
	{ "mlp.c_fc.", VN_PART_UP }, { "mlp.c_proj.", VN_PART_DOWN }, { "ln_1.", VN_PART_NORM_IN },
	  { "ln_2.", VN_PART_NORM_POST },
	{ "in_proj_qkv.", VN_PART_GDN_QKV }, { "in_proj_z.", VN_PART_GDN_Z }, { "in_proj_b.", VN_PART_GDN_B },
	  { "in_proj_a.", VN_PART_GDN_A },
	{ "conv1d.", VN_PART_GDN_CONV }, { "dt_bias", VN_PART_GDN_DT }, { "A_log", VN_PART_GDN_LOG },
	  { "linear_attn.norm.", VN_PART_GDN_NORM },
	{ "linear_attn.out_proj.", VN_PART_GDN_OUT }, { "embed_tokens.", VN_PART_EMBED }, { "wte.", VN_PART_EMBED },
	{ "lm_head.", VN_PART_HEAD }, { "ln_f.", VN_PART_NORM }, { "norm.", VN_PART_NORM },
};
/* clang-format on */

static const struct {
	vn_weight_part a, b;
	vn_mistake     weight, bias;
} exchanges[] = {
	{ VN_PART_GATE, VN_PART_UP, VN_MISTAKE_W4, VN_MISTAKE_W4 },
	{ VN_PART_K, VN_PART_V, VN_MISTAKE_W4, VN_MISTAKE_W8 },
	{ VN_PART_NORM_Q, VN_PART_NORM_K, VN_MISTAKE_N11, VN_MISTAKE_N11 },
	{ VN_PART_NORM_IN, VN_PART_NORM_POST, VN_MISTAKE_N12, VN_MISTAKE_N12 },
	{ VN_PART_GDN_B, VN_PART_GDN_A, VN_MISTAKE_G3, VN_MISTAKE_G3 },
	{ VN_PART_EMBED, VN_PART_HEAD, VN_MISTAKE_W10, VN_MISTAKE_W10 },
};

/* The rest of the name after ".layers.12." or ".h.12.", which may also start the name. */
static const char *behind_layer(const char *name, int *layer)
{
	static const char *const words[] = { "layers.", "h.", "blk." };
	for (const char *p = name; *p; p = strchr(p, '.') ? strchr(p, '.') + 1 : p + strlen(p))
		for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
			const size_t n = strlen(words[i]);
			if (strncmp(p, words[i], n) != 0 || !isdigit((unsigned char)p[n]))
				continue;
			char      *end;
			const long l = strtol(p + n, &end, 10);
			if (*end == '.' && l <= INT_MAX) {
				*layer = (int)l;
				return end + 1;
			}
		}
	return NULL;
}

vn_weight_name vn_weight_name_of(const char *name)
{
	vn_weight_name x = { .layer = -1 };
	const char    *tail = behind_layer(name, &x.layer);
	const size_t   n = strlen(name);

	x.tail = tail ? tail : name;
	x.bias = n > 5 && strcmp(name + n - 5, ".bias") == 0;
	for (size_t i = 0; !x.part && i < sizeof parts / sizeof *parts; i++)
		if (strstr(x.tail, parts[i].word))
			x.part = parts[i].part;
	return x;
}

bool vn_weight_part_is_norm(vn_weight_part p)
{
	return (p >= VN_PART_NORM && p <= VN_PART_NORM_K) || p == VN_PART_GDN_NORM;
}

vn_mistake vn_weight_exchange(const vn_weight_name *x, const vn_weight_name *y)
{
	const vn_weight_part a = x->part, b = y->part;
	for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges && x->bias == y->bias; i++)
		if ((exchanges[i].a == a && exchanges[i].b == b) || (exchanges[i].a == b && exchanges[i].b == a))
			return x->bias ? exchanges[i].bias : exchanges[i].weight;
	return VN_NO_MISTAKE;
}

static int compare_name(const void *name, const void *row)
{
	const vn_weight_row *r = row;
	return strcmp(name, r->name);
}

static const vn_weight_row *find_row(const vn_weight_row *rows, int n, const char *name)
{
	return n > 0 ? bsearch(name, rows, (size_t)n, sizeof *rows, compare_name) : NULL;
}

/* Prefixes that publishers use for the same model trunk. */
static const char *const prefixes[] = {
	"model.language_model.", "model.transformer.", "model.model.", "language_model.model.",
	"language_model.",       "transformer.",       "model.",       ""
};

const vn_weight_row *vn_weight_twin(const vn_weight_row *rows, int n, const char *name)
{
	const vn_weight_row *found = find_row(rows, n, name);
	char                 other[VN_NAME_MAX + 32];
	size_t               own = 0;

	while (!found && strncmp(name, prefixes[own], strlen(prefixes[own])) != 0)
		own++;
	for (size_t i = 0; !found && i < sizeof prefixes / sizeof *prefixes; i++) {
		snprintf(other, sizeof other, "%s%s", prefixes[i], name + strlen(prefixes[own]));
		found = find_row(rows, n, other);
	}
	return found;
}

const vn_weight_row *vn_weight_beside(const vn_weight_side *side, const vn_weight_row *row, const vn_weight_name *name,
                                      vn_weight_part part)
{
	const size_t trunk = (size_t)(name->tail - row->name);
	for (int i = 0; i < side->n; i++) {
		const vn_weight_name x = vn_weight_name_of(side->row[i].name);
		if (x.part == part && x.layer == name->layer && x.bias == name->bias &&
		    (size_t)(x.tail - side->row[i].name) == trunk && strncmp(side->row[i].name, row->name, trunk) == 0)
			return &side->row[i];
	}
	return NULL;
}
