// mask.glsl: what the three attention shaders share: operands, where a key lies
// and who sees whom.
//
// Keys and values lie token by token, (S,G,K), or with PAGED in the blocks of a
// pool, (blocks, G, B, K), table[j/B] being that of key j. Nothing else differs:
// sums run over j in either case.
//
// Query i of this dispatch stands at position P + i and sees key j when
// j <= P + i (causal) and, with a window W, j > P + i - W. S keys exist.
layout(push_constant) uniform Push {
	Real  q, k, v, y;
	uint  T, S, P, H, G, K;
	uint  causal, window;
	float scale;
	uint  h0, j0, n_keys; // attn_scores, attn_probs: the head and the keys to make
	uint  B;              // tokens of a block
	Int   table;
} p;

// Where the row of key j (or of its value) begins, for key head g.
uint kv_row(uint j, uint g)
{
#if PAGED
	return ((uint(p.table.v[j / p.B]) * p.G + g) * p.B + j % p.B) * p.K;
#else
	return (j * p.G + g) * p.K;
#endif
}

bool visible(uint i, uint j)
{
	return (p.causal == 0 || j <= p.P + i) && (p.window == 0 || j + p.window > p.P + i);
}

// The keys that query i can see lie in [keys_begin, keys_end).
uint keys_begin(uint i)
{
	return p.window != 0 && p.P + i + 1 > p.window ? p.P + i + 1 - p.window : 0;
}

uint keys_end(uint i)
{
	return p.causal != 0 ? min(p.P + i + 1, p.S) : p.S;
}
