/* propose_says.c: which checkpoint the words of a name say; see propose_internal.h. */
#include "capture/names/propose_internal.h"

/* A name that says all of `must`, and nothing else but `may`, can be this point, except in a model
 * that has the point `unless`. Of two such points the numbers decide. */
typedef struct named_point {
	int      point;
	unsigned must, may;
	int      unless; /* -1: none */
} named_point;

#define Q      VN_SAYS_Q
#define K      VN_SAYS_K
#define V      VN_SAYS_V
#define NORM   VN_SAYS_NORM
#define ATTN   VN_SAYS_ATTN
#define MLP    VN_SAYS_MLP
#define IN     VN_SAYS_IN
#define OUT    VN_SAYS_OUT
#define EMBED  VN_SAYS_EMBED
#define POST   VN_SAYS_POST
#define PRE    VN_SAYS_PRE
#define PROJ   VN_SAYS_PROJ
#define FIRST  VN_SAYS_FIRST
#define SECOND VN_SAYS_SECOND

/* In layers; each may say LAYER, and PROJ where it is not in `must`. */
static const named_point in_layers[] = {
	{ VN_POINT_INPUT, VN_SAYS_LAYER | IN, 0, -1 },
	{ VN_POINT_OUTPUT, VN_SAYS_LAYER, OUT, -1 },
	{ VN_POINT_ATTN_NORM, NORM | ATTN, PRE | IN, -1 },
	{ VN_POINT_ATTN_NORM, NORM | IN, 0, -1 },
	{ VN_POINT_ATTN_NORM, NORM | FIRST, 0, -1 },
	{ VN_POINT_ATTN_POST_NORM, NORM | POST | ATTN, 0, -1 },
	{ VN_POINT_MLP_NORM, NORM | POST | ATTN, 0, VN_POINT_ATTN_POST_NORM },
	{ VN_POINT_MLP_NORM, NORM | MLP, PRE, -1 },
	{ VN_POINT_MLP_NORM, NORM | SECOND, 0, -1 },
	{ VN_POINT_MLP_POST_NORM, NORM | POST | MLP, 0, -1 },
	{ VN_N_POINTS + VN_FUSED_QKV, VN_SAYS_QKV, ATTN, VN_POINT_C_ATTN },
	{ VN_POINT_C_ATTN, VN_SAYS_QKV, ATTN, -1 },
	{ VN_POINT_C_ATTN, ATTN, 0, -1 }, /* "attn.c_attn", of the shape that "attn" has not */
	{ VN_POINT_QG_PROJ, Q, ATTN, -1 },
	{ VN_POINT_Q_PROJ, Q, ATTN, VN_POINT_QG_PROJ },
	{ VN_POINT_K_PROJ, K, ATTN, -1 },
	{ VN_POINT_V_PROJ, V, ATTN, -1 },
	{ VN_POINT_Q_NORM, Q | NORM, ATTN, -1 },
	{ VN_POINT_K_NORM, K | NORM, ATTN, -1 },
	{ VN_POINT_Q_ROPE, Q | VN_SAYS_ROPE, ATTN, -1 },
	{ VN_POINT_K_ROPE, K | VN_SAYS_ROPE, ATTN, -1 },
	{ VN_POINT_K_CACHE, K | VN_SAYS_CACHE, ATTN, -1 },
	{ VN_POINT_V_CACHE, V | VN_SAYS_CACHE, ATTN, -1 },
	{ VN_POINT_ATTN_SCORES, VN_SAYS_SCORES, ATTN, -1 },
	{ VN_POINT_ATTN_PROBS, VN_SAYS_PROBS, ATTN | VN_SAYS_SCORES, -1 },
	{ VN_POINT_ATTN_PROBS, ATTN | FIRST, 0, -1 },
	{ VN_POINT_ATTN_CONTEXT, VN_SAYS_CONTEXT, ATTN | OUT, VN_POINT_ATTN_GATED },
	{ VN_POINT_ATTN_CONTEXT, ATTN | VN_SAYS_O | IN, 0, VN_POINT_ATTN_GATED },
	{ VN_POINT_ATTN_CONTEXT, ATTN | PROJ | IN, OUT, VN_POINT_ATTN_GATED },
	{ VN_POINT_ATTN_GATED, ATTN | VN_SAYS_O | IN, 0, -1 },
	{ VN_POINT_ATTN_OUT, VN_SAYS_O, ATTN, -1 },
	{ VN_POINT_ATTN_OUT, ATTN, OUT, -1 },
	{ VN_POINT_ATTN_RESIDUAL, NORM | POST | ATTN | IN, 0, VN_POINT_ATTN_POST_NORM },
	{ VN_POINT_ATTN_RESIDUAL, NORM | SECOND | IN, 0, -1 },
	{ VN_N_POINTS + VN_FUSED_GATE_UP, VN_SAYS_GATE | VN_SAYS_UP, MLP, -1 },
	{ VN_POINT_GATE_PROJ, VN_SAYS_GATE, MLP, -1 },
	{ VN_POINT_UP_PROJ, VN_SAYS_UP, MLP, -1 },
	{ VN_POINT_UP_PROJ, VN_SAYS_FC, MLP, VN_POINT_GATE_PROJ },
	{ VN_POINT_GATE_ACT, VN_SAYS_GATE | VN_SAYS_ACT, MLP, -1 },
	{ VN_POINT_GATE_ACT, VN_SAYS_ACT, MLP, -1 },
	{ VN_POINT_MLP_ACT, VN_SAYS_ACT, MLP, -1 },
	{ VN_POINT_MLP_ACT, VN_SAYS_DOWN | IN, MLP, -1 },
	{ VN_POINT_MLP_ACT, MLP | PROJ | IN, 0, -1 },
	{ VN_POINT_DOWN_PROJ, VN_SAYS_DOWN, MLP | OUT, -1 },
	{ VN_POINT_DOWN_PROJ, MLP, OUT, -1 },
	{ VN_POINT_MOE_OUT, MLP, OUT, -1 },
};
static const named_point outside_layers[] = {
	{ VN_POINT_POS_EMBED, EMBED | VN_SAYS_POSITION, OUT, -1 },
	{ VN_POINT_TOKEN_EMBED, VN_SAYS_TOKEN, EMBED | OUT, -1 },
	{ VN_POINT_TOKEN_EMBED, EMBED, OUT, -1 },
	{ VN_POINT_EMBED, EMBED, VN_SAYS_TOKEN | OUT, VN_POINT_POS_EMBED },
	{ VN_POINT_EMBED, EMBED, OUT, -1 },
	{ VN_POINT_EMBED, VN_SAYS_TOKEN, OUT, VN_POINT_TOKEN_EMBED },
	{ VN_POINT_FINAL_NORM, NORM, VN_SAYS_FINAL | OUT, -1 },
	{ VN_POINT_RAW_LOGITS, VN_SAYS_LOGITS, OUT, -1 },
	{ VN_POINT_LOGITS, VN_SAYS_LOGITS, OUT, VN_POINT_RAW_LOGITS },
};

static bool says_row(const named_point *row, unsigned words, bool layers)
{
	const unsigned always = layers ? VN_SAYS_LAYER | PROJ : 0;
	return (words & row->must) == row->must && !(words & ~(row->must | row->may | always));
}

bool vn_words_say(unsigned words, int point, bool layers)
{
	const named_point *row = layers ? in_layers : outside_layers;
	const size_t       n = layers ? sizeof in_layers / sizeof *row : sizeof outside_layers / sizeof *row;
	for (size_t i = 0; i < n; i++)
		if (row[i].point == point && says_row(&row[i], words, layers))
			return true;
	return false;
}

bool vn_words_next(unsigned words, bool layers, vn_named_row *row)
{
	const named_point *list = layers ? in_layers : outside_layers;
	const int          n = (int)(layers ? sizeof in_layers / sizeof *list : sizeof outside_layers / sizeof *list);
	while (++row->at < n)
		if (says_row(&list[row->at], words, layers)) {
			row->point = list[row->at].point;
			row->unless = list[row->at].unless;
			return true;
		}
	return false;
}
