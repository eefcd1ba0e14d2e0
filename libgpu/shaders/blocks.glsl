// blocks.glsl: the push block of each shader, for the shaders (push.glsl) and for C (kernels.h).
//
// Letters as in the head of each shader. An address has 8 bytes; `pad` fills a block to a multiple
// of 8. What is pushed has at most 128 bytes, the least that a device must support.
BLOCK(vn_push_embed) {
	Address w;
	Int     ids;
	Real    y;
	uint    T, D;
};

// rms_norm, layer_norm, l2_norm and gated_norm, which alone has z.
BLOCK(vn_push_norm) {
	Real  x, z, g, b, y;
	uint  R, N;
	float eps, offset;
	uint  has_bias, pad;
};

BLOCK(vn_push_slice) {
	Real x, y;
	uint R, N, from, width;
};

// x w^T + bias, and the operands of GATED: a second product of the same shape, and the activated
// first times the second; those of EXPERTS: experts.glsl.
BLOCK(vn_push_linear) {
	Real  x, w, b, y;
	uint  T, M, N, y_stride;
	uint  has_bias, width; // width: 8, 4 or 1; x, w and their rows start at multiples of it
	Float sums;            // of the shares of N; EXPERTS, which have one share: limit()
	uint  shares;
	uint  y_wide;          // 1: y and its rows start at multiples of 16 bytes
#if GATED || EXPERTS
	Real  w_up, b_up, up, gated;
	uint  up_has_bias, act;
#endif
#if EXPERTS
	Int   rows; // linear_vec: the ids, as floats
	uint  E, k;
#endif
};

BLOCK(vn_push_add_norm) {
	Real  a, b, x, g, y;
	Float sums;
	Real  bias;
	uint  R, N;
	float eps, offset;
	uint  shares, has_bias;
};

BLOCK(vn_push_norm_rope) {
	Real  x, g;
	Float table;
	Real  y, z;
	uint  rows, H, K, R;
	float eps, offset;
};

BLOCK(vn_push_rope) {
	Real  x;
	Float table;
	Real  y;
	uint  T, H, K, R;
	uint  first, pairs; // pairs: VN_PAIR_HALVES...
};

// Every shader of attention: mask.glsl.
BLOCK(vn_push_attention) {
	Real  q, k, v, y;
	uint  T, S, P, H, G;
	uint  K, U;           // of a head: the width of queries and keys, and of values
	uint  causal, window;
	float scale;
	uint  h0, j0, n_keys; // attn_scores, attn_probs: the head and the keys to make; others: parts.glsl
	uint  B;              // tokens of a block
	float cap;            // of scores; 0: none
	uint  has_sinks;
	Int   table;
	Real  sinks;          // (H)
	uint  first, pad;     // tokens before `first` are seen by themselves only
};

BLOCK(vn_push_pages) {
	Raw  rows, pool;
	Int  table;
	uint at, n, G, K, B, pad;
};

// act, gated and add: map.glsl.
BLOCK(vn_push_map) {
	Real a, b, y; // act: b is not read
	uint n, act;  // act: VN_SILU...
	uint eights;  // not 0: a, b and y start at eight numbers
	uint pad;
};

BLOCK(vn_push_scale) {
	Real  x, y;
	uint  n;
	float scale, cap; // cap 0: none
	uint  pad;
};

BLOCK(vn_push_append) {
	Raw  from, to;
	uint n;
	uint eights; // not 0: both start at eight numbers
};

BLOCK(vn_push_from_bf16) {
	Raw  x; // at 16 bytes
	Int  over;
	uint eights, rest; // numbers: 8 eights + rest
};

BLOCK(vn_push_causal_conv) {
	Real x, w, before, y;
	uint T, X, J, pad;
};

BLOCK(vn_push_log_decay) {
	Real  x, A, dt;
	Float y;
	uint  T, N;
};

BLOCK(vn_push_delta_rule) {
	Float q, k;
	Real  v;
	Float g;
	Real  beta;
	Float before, after;
	Real  y;
	uint  T, nk, nv, dk, dv;
	float scale;
	uint  pad;
};

BLOCK(vn_push_join) {
	Real a, b, y;
	uint R, A, B, share; // rows of a, and how many of them share one of b; widths
};

BLOCK(vn_push_top_k) {
	Real  x;
	Float bias, y;
	uint  T, E, k;
	uint  sigmoid, has_bias;
	uint  groups, used, best; // groups 0: none
};

BLOCK(vn_push_route) {
	Real  x;
	Float ids;
	Real  y;
	uint  T, E, k, normalised, sigmoid;
	float scale;
};

BLOCK(vn_push_expert_rows) {
	Float ids;
	Int   rows;
	Real  y;
	uint  P, D, E, pad;
};

BLOCK(vn_push_combine) {
	Real x, w, y;
	uint T, k, D;
	uint eights; // not 0: D is a multiple of 8, and x and y start at eight numbers
};
