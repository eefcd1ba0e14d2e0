// mask.glsl: what the three attention shaders share: operands, where a key lies
// and who sees whom.
//
// Keys and values lie token by token, (S,G,K), or with PAGED in the blocks of a
// pool, (blocks, G, B, K), table[j/B] being that of key j. Nothing else differs:
// sums run over j in either case.
//
// Query i of this dispatch stands at position P + i and sees key j when
// j <= P + i (causal) and, with a window W, j > P + i - W. S keys exist.
// For experiments (vn_consts): ahead, head_map, leak, padding; all 0 otherwise.
layout(push_constant) uniform Push {
	Real  q, k, v, y;
	uint  T, S, P, H, G, K;
	uint  causal, window;
	float scale;
	uint  h0, j0, n_keys; // attn_scores, attn_probs: the head and the keys to make
	uint  B;              // tokens of a block
	Int   table;
	int   ahead;
	uint  head_map, leak, padding;
} p;

// The key head of query head h.
uint key_head(uint h)
{
	return p.head_map == 1 ? h % p.G : h / (p.H / p.G);
}

// Where the row of key j (or of its value) begins, for key head g.
uint kv_row(uint j, uint g)
{
#if PAGED
	return ((uint(p.table.v[j / p.B]) * p.G + g) * p.B + j % p.B) * p.K;
#else
	return (j * p.G + g) * p.K;
#endif
}

// By the mask.
bool allowed(uint i, uint j)
{
	return (p.causal == 0 || int(j) <= int(p.P + i) + p.ahead) && (p.window == 0 || j + p.window > p.P + i);
}

bool visible(uint i, uint j)
{
	return p.leak != 0 || allowed(i, j);
}

// The score of key j that goes into the softmax.
float masked(uint i, uint j, float s)
{
	return p.leak != 0 && !allowed(i, j) ? 0.0 : s;
}

// The sum of a softmax with the padding; top: what its scores are relative to.
float with_padding(float sum, float top)
{
	return p.padding == 0 ? sum : sum + float(p.padding) * exp_(-top);
}

// The keys that query i can see lie in [keys_begin, keys_end).
uint keys_begin(uint i)
{
	return p.leak == 0 && p.window != 0 && p.P + i + 1 > p.window ? p.P + i + 1 - p.window : 0;
}

uint keys_end(uint i)
{
	return p.leak == 0 && p.causal != 0 ? uint(clamp(int(p.P + i + 1) + p.ahead, 0, int(p.S))) : p.S;
}
