// mask_experiment.glsl: mask.glsl with the changes of an experiment (vn_experiment.attention). A
// key that the mask lets pass, but the experiment hides, has score minus infinity.
const uint NOWHERE = 0xFFFFFFFFu;

// The softmax differs from every family's: softmax_experiment.glsl.
bool other_softmax() { return p.form != 0 && p.form != VN_ATTN_SCORES_F16; }

// The key head of query head h.
uint key_head(uint h)
{
	return p.head_map == 0 ? h / (p.H / p.G) : p.head_map == VN_HEADS_NONE ? h : h % p.G;
}

// Where a row begins; NOWHERE: it is 0.
uint kv_row(uint j, uint h, uint cache)
{
	const uint past = p.P - p.before, B = p.cache_block;
	uint g = key_head(h);

	if (p.head_map == VN_HEADS_FLAT)
		j += h / p.G;
	switch (cache) {
	case VN_CACHE_BLOCKLESS:
		j += j < p.S ? (p.S - 1 - j) / B * B : 0;
		break;
	case VN_CACHE_NEXT:
		j += B;
		break;
	case VN_CACHE_PAST:
		j = j >= B ? j - B : p.S;
		break;
	case VN_CACHE_SWAPPED:
		j = (j / B ^ 1u) * B + j % B;
		break;
	case VN_CACHE_HEADS_FIRST: {
		const uint at = g * B + j % B;
		j = j / B * B + at / p.G;
		g = at % p.G;
		break;
	}
	case VN_CACHE_LATE:
		j = j < past ? j : p.S;
		break;
	case VN_CACHE_STALE:
		j = j < past ? j : past > 0 ? past - 1 : p.S;
		break;
	case VN_CACHE_RING:
		j = j + 1 < p.S || p.S < B ? j + 1 : p.S - B;
		break;
	case VN_CACHE_FORMER:
		j = j / B < (p.S - 1) / B ? j : j % B;
		break;
	case VN_CACHE_SEEN:
		j = j < p.S ? j : j % B;
		break;
	}
	return j < p.S && g < p.G ? kv_at(j, g) : NOWHERE;
}

uint k_row(uint j, uint h) { return kv_row(j, h, p.k_cache); }
uint v_row(uint j, uint h) { return kv_row(j, h, p.v_cache); }

float narrowed(float x, uint cache)
{
	return cache == VN_CACHE_F16 ? as_half(x) : cache == VN_CACHE_F8 ? as_f8(x, 448.0, 121u, 3u)
	                    : cache == VN_CACHE_F8_WIDE ? as_f8(x, 57344.0, 113u, 2u) : x;
}

float k_of(uint row, uint d) { return narrowed(float(p.k.v[row + d]), p.k_cache); }
float v_of(uint row, uint d) { return row != NOWHERE ? narrowed(float(p.v.v[row + d]), p.v_cache) : 0.0; }
bool  there(uint row)        { return row != NOWHERE; }
bool  as_kept()              { return p.k_cache == 0; }

float scaled(float s)
{
	return capped((p.form == VN_ATTN_SCORES_F16 ? as_half(s) : s) * p.scale);
}

// The position of query i for the mask.
uint place(uint i)
{
	return p.from_zero != 0 ? p.before + i : p.P + i;
}

// By the mask.
bool allowed(uint i, uint j)
{
	return (p.causal == 0 || int(j) <= int(place(i)) + p.ahead)
	       && (p.window == 0 || j + p.window > place(i) || j < p.sinks);
}

bool blind(uint i)
{
	const uint from = p.window != 0 && place(i) + 1 > p.window
	           ? place(i) + 1 - p.window : 0;

	return p.blind != 0 && p.causal != 0 && int(place(i) + 1) + p.ahead <= int(from);
}

bool visible(uint i, uint j)
{
	return allowed(i, j) || p.leak != 0 || j >= p.S || blind(i);
}

float masked(uint i, uint j, float s)
{
	if (p.leak == 0 && p.blind == 0 && p.k_cache != VN_CACHE_SEEN && p.sinks == 0)
		return s;
	if (blind(i))
		return p.blind == 1 ? 0.0 : uintBitsToFloat(0x7FC00000u);
	if (j >= p.S || allowed(i, j))
		return s;
	return p.leak == 1 ? 0.0 : p.leak == 2 ? s + 1.0 : -INFINITY;
}

// With the padding.
float whole(float sum, float top)
{
	return p.padding == 0 ? sum : sum + float(p.padding) * exp_(-top);
}

uint keys_begin(uint i)
{
	return p.leak == 0 && p.blind == 0 && p.sinks == 0 && p.window != 0 && place(i) + 1 > p.window
	           ? place(i) + 1 - p.window : 0;
}

uint keys_end(uint i)
{
	if (p.k_cache == VN_CACHE_SEEN)
		return (p.S + p.cache_block - 1) / p.cache_block * p.cache_block;
	return p.leak == 0 && p.blind == 0 && p.causal != 0
	           ? uint(clamp(int(place(i) + 1) + p.ahead, 0, int(p.S))) : p.S;
}
