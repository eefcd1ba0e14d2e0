// mask.glsl: what the three attention shaders share: operands and who sees whom.
//
// Query i of this dispatch stands at position P + i and sees key j when
// j <= P + i (causal) and, with a window W, j > P + i - W. S keys exist.
layout(push_constant) uniform Push {
	Real  q, k, v, y;
	uint  T, S, P, H, G, K;
	uint  causal, window;
	float scale;
	uint  h0, j0, n_keys; // attn_scores, attn_probs: the head and the keys to make
} p;

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
