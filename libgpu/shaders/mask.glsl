// mask.glsl: shared by the attention shaders: operands, the address of a key, and
// which query sees which key.
//
// Keys and values are stored token by token, (S,G,K), or with PAGED in the blocks of a pool,
// (blocks, G, B, K): key j is in block table[j/B]. Nothing else differs: sums run over j in both
// cases.
//
// Query i of this dispatch has position P + i and sees key j when
// j <= P + i (causal) and, with a window W, j > P + i - W. S keys exist.
// mask_experiment.glsl has the rules that an experiment changes.
PUSH(vn_push_attention);

uint kv_at(uint j, uint g)
{
#if PAGED
	return ((uint(p.table.v[j / p.B]) * p.G + g) * p.B + j % p.B) * p.K;
#else
	return (j * p.G + g) * p.K;
#endif
}

float capped(float s) { return p.cap != 0.0 ? soft_cap(s, p.cap) : s; }

#if EXPERIMENT
#include "mask_experiment.glsl"
#else
// Where the key row of token j begins for query head h; and its value row.
uint k_row(uint j, uint h) { return kv_at(j, h / (p.H / p.G)); }
uint v_row(uint j, uint h) { return k_row(j, h); }

// Number d of such a row.
float k_of(uint row, uint d) { return float(p.k.v[row + d]); }
float v_of(uint row, uint d) { return float(p.v.v[row + d]); }
// Does that row exist? Its numbers are as the cache holds them.
bool there(uint row) { return true; }
bool as_kept()       { return true; }

// The product of query and key as a score; and as the softmax uses it.
float scaled(float s) { return capped(s * p.scale); }
float masked(uint i, uint j, float s) { return s; }

bool visible(uint i, uint j)
{
	return (p.causal == 0 || j <= p.P + i) && (p.window == 0 || j + p.window > p.P + i);
}

// The sum of a softmax; top: the number that is subtracted from its scores.
float whole(float sum, float top) { return sum; }

// The keys that query i can see are in [keys_begin, keys_end).
uint keys_begin(uint i) { return p.window != 0 && p.P + i + 1 > p.window ? p.P + i + 1 - p.window : 0; }
uint keys_end(uint i)   { return p.causal != 0 ? min(p.P + i + 1, p.S) : p.S; }
#endif
