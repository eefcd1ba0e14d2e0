// mask.glsl: shared by the attention shaders: operands, the address of a key, and
// which query sees which key.
//
// Keys are stored token by token, (S,G,K), or with PAGED in the blocks of a pool,
// (blocks, G, B, K): key j is in block table[j/B]. Values likewise, U wide. Nothing else differs:
// sums run over j in both cases.
//
// Query i of this dispatch has position P + i and sees key j when
// j <= P + i (causal) and, with a window W, j > P + i - W. Tokens before `first` are seen by
// themselves only. S keys exist.
PUSH(vn_push_attention);

// The number of token j's row of head g among all rows.
uint kv_at(uint j, uint g)
{
#if PAGED
	return (uint(p.table.v[j / p.B]) * p.G + g) * p.B + j % p.B;
#else
	return j * p.G + g;
#endif
}

// A score after the soft cap, if there is one.
float capped(float s) { return p.cap != 0.0 ? soft_cap(s, p.cap) : s; }

// The sum of a row's weights, which are relative to exp(top), with the sink of its head h.
float with_sink(float sum, float top, uint h)
{
	return p.has_sinks != 0 ? sum + exp_(float(p.sinks.v[h]) - top) : sum;
}

// Where the key and the value of token j begin for query head h.
uint key_row(uint j, uint h)   { return kv_at(j, h / (p.H / p.G)) * p.K; }
uint value_row(uint j, uint h) { return kv_at(j, h / (p.H / p.G)) * p.U; }

bool visible(uint i, uint j)
{
	return (p.causal == 0 || j <= p.P + i) && (p.window == 0 || j + p.window > p.P + i) && j >= min(p.first, p.P + i);
}

// The keys that query i can see are in [keys_begin, keys_end).
uint keys_begin(uint i)
{
	return max(p.window != 0 && p.P + i + 1 > p.window ? p.P + i + 1 - p.window : 0, min(p.first, p.P + i));
}
uint keys_end(uint i)   { return p.causal != 0 ? min(p.P + i + 1, p.S) : p.S; }
