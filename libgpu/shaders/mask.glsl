// mask.glsl: what the three attention shaders share: operands, where a key lies
// and who sees whom.
//
// Keys and values lie token by token, (S,G,K), or with PAGED in the blocks of a
// pool, (blocks, G, B, K), table[j/B] being that of key j. Nothing else differs:
// sums run over j in either case.
//
// Query i of this dispatch stands at position P + i and sees key j when
// j <= P + i (causal) and, with a window W, j > P + i - W. S keys exist.
// For experiments (vn_consts): ahead, head_map, leak, padding, odd; all 0 otherwise. What they hide among the keys that pass has
// score minus infinity.
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
	uint  odd, cache_block; // odd: form, from_zero << 8, blind << 9, cache << 12 of keys, << 16 of values, sinks << 20
	uint  before;           // attention_odd, attn_probs: queries of the call before q
} p;

const uint OVER_QUERIES = 1, OVER_HEADS = 2, NO_MAX = 3, NO_MAX_F16 = 4, PROBS_F16 = 5, PROBS_BF16 = 6, SCORES_F16 = 7;
const uint NOWHERE = 0xFFFFFFFFu;
const uint SEEN = 11;

uint form()
{
	return p.odd & 0xFFu;
}

// The key head of query head h.
uint key_head(uint h)
{
	return p.head_map == 0 ? h / (p.H / p.G) : p.head_map == 2 ? h : h % p.G;
}

uint kv_at(uint j, uint g)
{
#if PAGED
	return ((uint(p.table.v[j / p.B]) * p.G + g) * p.B + j % p.B) * p.K;
#else
	return (j * p.G + g) * p.K;
#endif
}

// The same where an experiment looks for it; NOWHERE: it is 0. past: tokens before the call.
uint kv_elsewhere(uint j, uint h, uint cache)
{
	const uint past = p.P - p.before, B = p.cache_block;
	uint g = key_head(h);

	if (p.head_map == 3)
		j += h / p.G;
	switch (cache) {
	case 1: // blockless
		j += j < p.S ? (p.S - 1 - j) / B * B : 0;
		break;
	case 2: // next
		j += B;
		break;
	case 12: // past
		j = j >= B ? j - B : p.S;
		break;
	case 3: // swapped
		j = (j / B ^ 1u) * B + j % B;
		break;
	case 4: { // heads first
		const uint at = g * B + j % B;
		j = j / B * B + at / p.G;
		g = at % p.G;
		break;
	}
	case 5: // late
		j = j < past ? j : p.S;
		break;
	case 6: // stale
		j = j < past ? j : past > 0 ? past - 1 : p.S;
		break;
	case 7: // ring
		j = j + 1 < p.S || p.S < B ? j + 1 : p.S - B;
		break;
	case 10: // former
		j = j / B < (p.S - 1) / B ? j : j % B;
		break;
	case SEEN:
		j = j < p.S ? j : j % B;
		break;
	}
	return j < p.S && g < p.G ? kv_at(j, g) : NOWHERE;
}

bool odd_softmax()
{
	return form() != 0 && form() != SCORES_F16;
}

// Where the row of key j begins that query head h reads, or (shift 16) of its value; NOWHERE: it is 0.
uint kv_row(uint j, uint h, uint shift)
{
	const uint cache = p.odd >> shift & 0xFu;

	return cache == 0 && p.head_map < 2 ? kv_at(j, key_head(h)) : kv_elsewhere(j, h, cache);
}

uint k_row(uint j, uint h) { return kv_row(j, h, 12); }
uint v_row(uint j, uint h) { return kv_row(j, h, 16); }

// A number of the cache as an experiment keeps it.
float kept(float x, uint shift)
{
	const uint cache = p.odd >> shift & 0xFu;

	return cache == 8 ? as_half(x) : cache == 9 ? as_f8(x, 448.0, 121u, 3u) : cache == 13 ? as_f8(x, 57344.0, 113u, 2u) : x;
}

// A product of query and key as a score.
float scaled(float s)
{
	return (form() == SCORES_F16 ? as_half(s) : s) * p.scale;
}

// The position of query i for the mask.
uint place(uint i)
{
	return (p.odd >> 8 & 1u) != 0 ? p.before + i : p.P + i;
}

// Keys, from the first on, that no window hides.
uint sinks()
{
	return p.odd >> 20;
}

// By the mask.
bool allowed(uint i, uint j)
{
	return (p.causal == 0 || int(j) <= int(place(i)) + p.ahead) && (p.window == 0 || j + p.window > place(i) || j < sinks());
}

// What a query that the mask shows no key sees: 0 nothing, 1 all keys alike, 2 NaN.
uint when_blind()
{
	return p.odd >> 9 & 3u;
}

bool blind(uint i)
{
	const uint from = p.window != 0 && place(i) + 1 > p.window ? place(i) + 1 - p.window : 0;

	return when_blind() != 0 && p.causal != 0 && int(place(i) + 1) + p.ahead <= int(from);
}

bool sees_behind()
{
	return (p.odd >> 12 & 0xFu) == SEEN;
}

bool visible(uint i, uint j)
{
	return allowed(i, j) || p.leak != 0 || j >= p.S || blind(i);
}

// The score of key j that goes into the softmax.
float masked(uint i, uint j, float s)
{
	if (p.leak == 0 && when_blind() == 0 && !sees_behind() && sinks() == 0)
		return s;
	if (blind(i))
		return when_blind() == 1 ? 0.0 : uintBitsToFloat(0x7FC00000u);
	if (j >= p.S || allowed(i, j))
		return s;
	return p.leak == 1 ? 0.0 : p.leak == 2 ? s + 1.0 : -INFINITY;
}

// The sum of a softmax with the padding; top: what its scores are relative to.
float with_padding(float sum, float top)
{
	return p.padding == 0 ? sum : sum + float(p.padding) * exp_(-top);
}

// The keys that query i can see lie in [keys_begin, keys_end).
uint keys_begin(uint i)
{
	return p.leak == 0 && when_blind() == 0 && sinks() == 0 && p.window != 0 && place(i) + 1 > p.window ? place(i) + 1 - p.window : 0;
}

uint keys_end(uint i)
{
	if (sees_behind())
		return (p.S + p.cache_block - 1) / p.cache_block * p.cache_block;
	return p.leak == 0 && when_blind() == 0 && p.causal != 0 ? uint(clamp(int(place(i) + 1) + p.ahead, 0, int(p.S))) : p.S;
}
