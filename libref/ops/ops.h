/* ops.h: the operations of a plan on the CPU, one function each.
 *
 * Each has its formula, its shapes, and the reason for the order of summation. Results are not
 * rounded to a storage format here; exec/eval_real.c does that for all. The experiment (a parameter
 * of type vn_experiment) is NULL in a model (vn_node_experiment). `threads` changes no bit of any
 * result: work is cut into blocks that depend only on the shapes.
 */
#pragma once

#include "libref/base/tensor.h"
#include "libref/ops/ggml.h"
#include "libref/ops/real.h"
#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

/* Rows of an embedding.   w (V,D)   ids (T)   y (T,D)
 *   y[t,d] = w[ids[t],d] */
void REAL(vn_embed)(real *y, const vn_tensor *w, const int32_t *ids, int64_t T, int64_t D, vn_policy policy);

/* What a norm takes. */
typedef struct REAL(vn_normed) {
	const real          *x, *z;    /* (R,N); z: the gate of vn_gated_norm */
	const real          *g, *bias; /* (N); bias: of vn_layer_norm, or NULL */
	int64_t              R, N;
	const vn_norm       *c;
	const vn_experiment *e;
	int                  threads;
} REAL(vn_normed);

/* Root-mean-square norm over rows.   y (R,N)   c->offset: 0, or 1 if weights are stored minus one
 *   y[r,n] = (offset + g[n]) * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps)
 * offset + g[n] is rounded to a real: some files store this sum, and are the same model. In all
 * norms, e->norm.divisor and e->norm.eps_outside change the root as described at vn_experiment. */
void REAL(vn_rms_norm)(real *y, const REAL(vn_normed) * a);

/* The same norm (offset 0), then a gate.
 *   y[r,n] = g[n] * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps) * silu(z[r,n])
 * e->norm.gate: another activation; e->norm.gate_first: norms x silu(z) instead of x, without a
 * gate afterwards. */
void REAL(vn_gated_norm)(real *y, const REAL(vn_normed) * a);

/* Scales rows to length one.
 *   y[r,n] = x[r,n] / sqrt(sum_n(x[r,:]^2) + eps) */
void REAL(vn_l2_norm)(real *y, const REAL(vn_normed) * a);

/* Layer norm over rows.
 *   y[r,n] = (offset + g[n]) * (x[r,n] - mean) / sqrt(mean_n((x[r,:] - mean)^2) + eps) + bias[n]
 * offset as above */
void REAL(vn_layer_norm)(real *y, const REAL(vn_normed) * a);

/* Rows of a position table, from position `past` on.   w (C,D)   y (T,D)
 *   y[t,d] = w[past + t,d] */
void REAL(vn_positions)(real *y, const vn_tensor *w, int64_t past, int64_t T, int64_t D, vn_policy policy);

/* Columns of rows.   x (R,N)   y (R,width)
 *   y[r,i] = x[r,from + i] */
void REAL(vn_slice)(real *y, const real *x, int64_t R, int64_t N, int64_t from, int64_t width);

/* Columns of heads side by side.   in: a (T,H,A), b (T,G,B)   y (T,H,dim), dim = A + B
 *   y[t,h,:] = a[t,h,:], then b[t,g,:]          g = h / (H/G) */
void REAL(vn_join)(real *y, const real *const in[2], int64_t T, int64_t dim, const vn_consts *c);

/* A stored matrix (M,N). transposed: stored as (N,M). Products have the same bits in both cases. */
typedef struct vn_matrix {
	const vn_tensor *w;
	bool             transposed;
	int64_t          M, N;
} vn_matrix;

static inline vn_matrix vn_matrix_of(const vn_tensor *w, bool transposed)
{
	return (vn_matrix) { w, transposed, w->shape.dim[transposed], w->shape.dim[!transposed] };
}

/* Inputs [n0, n0 + n) of rows [m0, m0 + m) of a matrix. */
typedef struct vn_matrix_part {
	int64_t m0, m, n0, n;
} vn_matrix_part;
/* Loads a part, rounded as the policy stores it, into dst (m,n). Blocks of quantised weights must
 * be whole. */
void REAL(vn_matrix_block)(real *dst, const vn_matrix *a, vn_matrix_part part, vn_policy policy);

/* What a product takes. x (T,N), bias (M) or NULL: in the width of the function. policy.storage:
 * weights are rounded to it before use. */
typedef struct vn_operands {
	const void      *x;
	const vn_matrix *w;
	const void      *bias;
	int64_t          T;
	vn_policy        policy;
	int              threads;
} vn_operands;

/* Product with a stored matrix.   w (M,N)   y (T,M)
 *   y[t,m] = sum_n x[t,n] w[m,n] + bias[m]
 * Returns false without memory. */
bool REAL(vn_linear)(real *y, const vn_operands *f);

#if VN_REAL == 32
/* The same product in another policy as well, with another bias. Groups of weight rows that both
 * policies store alike are multiplied once: y has the bits of vn_linear, also->y those of
 * vn_linear, or of rows of weights that differ by less than 2^-20 of their length. also NULL:
 * vn_linear. */
typedef struct vn_also_f32 {
	float       *y; /* (T,M) */
	const float *bias;
	vn_policy    policy;
} vn_also_f32;
bool vn_linear_also_f32(float *y, const vn_operands *f, const vn_also_f32 *also);
#endif

/* Rounds x (T,N) as ggml does before a product with w, whose format in the file is `kept` (ggml.h),
 * into *out (T,N). *sums (T,N/32): for formats that have them, if w is still in that format; else
 * NULL. The caller frees both, also after a failure. Returns false without memory. */
bool REAL(vn_ggml_input)(const vn_operands *f, vn_dtype kept, vn_ggml_scale scale, real **out, float **sums);
/* y (T,M) += sum_b sums[t,b] minimum[m,b] */
void REAL(vn_ggml_add_sums)(real *y, const float *sums, const vn_matrix *w, int64_t T, int threads);

/* Rotary positions.   x, y (T,H,K)   row t is at position past + t   lists: rope.h
 *   for i < R/2, a = float(position) * f[i], columns (j,k) -> (m,n) of vn_rope_pair:
 *   y[m] = x[j] cos a - x[k] sin a
 *   y[n] = x[k] cos a + x[j] sin a        y[d] = x[d] for other columns
 * e, NULL in a model: other pairs and angles (vn_rope_pair, vn_rope_position, vn_rope_angle).
 * Returns false without memory. */
typedef struct vn_rope_input {
	const vn_rope            *rope;
	const vn_rope_experiment *e;
	const vn_list            *lists;
	const int32_t            *ids;                   /* (T), if e needs them */
	const int64_t            *begins;                /* (T), likewise */
	int64_t                   past, prompt, T, H, K; /* prompt: as in vn_args */
	int                       threads;
} vn_rope_input;
bool REAL(vn_rotate)(real *y, const real *x, const vn_rope_input *r);

/* Attention over a cache.   q (T,H,K)   k (S,G,K), v (S,G,U), S = past + T   context (T,H,U)
 *   s[h,i,j]   = scale * sum_d q[i,h,d] k[j,g,d]          g = h / (H/G), or as head_map says
 *   p[h,i,:]   = softmax over the visible j of s[h,i,:]    visible: plan.h
 *                with sinks, exp(sinks[h]) is added to its sum
 *   context[i,h,:] = sum_j p[h,i,j] v[j,g,:] */
typedef struct REAL(vn_attend) {
	const real          *q, *k, *v, *sinks; /* sinks (H), or NULL */
	int64_t              past, tokens;
	int64_t              prompt; /* as in vn_args, for an experiment */
	const vn_consts     *c;
	const vn_experiment *x;      /* NULL: as usual */
	const int64_t       *begins; /* as in vn_args, for an experiment */
	int                  threads;
	vn_policy            policy; /* its products and roles: what attention rounds */
} REAL(vn_attend);

bool REAL(vn_attention)(real *context, const REAL(vn_attend) * a);
/* Computes rows [row, row + rows) of one head's scores (before the mask) or probabilities: out
 * (rows, S). slot: VN_ATTN_SCORES or VN_ATTN_PROBS. */
bool REAL(vn_attention_rows)(real *out, const REAL(vn_attend) * a, int slot, int64_t head, int64_t row, int64_t rows);

/* The row in which the call of row t begins, of rows after `past`. begins: where several calls were
 * joined to one, the position at which that of each row begins, -1 for the first; NULL: they were
 * not. */
static inline int64_t vn_call_row(int64_t past, const int64_t *begins, int64_t t)
{
	return begins && begins[t] > past ? begins[t] - past : 0;
}

/* Causal convolution of each channel, then silu.   x, y (T,X)   w (X,J)   state (J-1,X)
 *   y[t,c] = silu(sum_j w[c,j] x[t-(J-1)+j, c])
 * state: the rows that precede x, oldest first; updated to those that precede the next call.
 * Experiments, e->conv: linear (no silu); ahead (x[t-(J-1)+j+ahead], 0 after the last row); forgets
 * (rows of earlier calls are 0). past, begins: of vn_call_row. Returns false without memory. */
typedef struct REAL(vn_conv) {
	const real          *x, *w;
	real                *state;
	int64_t              T;
	const vn_consts     *c;
	const vn_experiment *e;
	int64_t              past;
	const int64_t       *begins;
	int                  threads;
} REAL(vn_conv);
bool REAL(vn_causal_conv)(real *y, const REAL(vn_conv) * a);

/* Logarithm of the decay of a state.   x, y (T,N)   w: A_log, dt_bias (N)
 *   y[t,n] = -exp(A_log[n]) * softplus(x[t,n] + dt_bias[n])
 *   softplus(u) = log(1 + exp(u)), u if u > 20 */
void REAL(vn_log_decay)(real *y, const real *x, real *const w[2], int64_t T, int64_t N, const vn_experiment *e);

/* Gated delta rule.   q, k (T,nk,dk)   v, y (T,nv,dv)   g, beta (T,nv)   state (nv,dk,dv)
 * For each value head h, with q and k of head h / (nv/nk) and S = state[h], for t in order:
 *   S = exp(g[t,h]) S;  m = k[t]^T S;  d = beta[t,h] (v[t,h] - m);  S = S + k[t] d^T
 *   y[t,h] = scale * q[t]^T S
 * state: S of every head before the first token; updated to that after the last. Returns false
 * without memory. */
typedef struct REAL(vn_delta) {
	const real          *q, *k, *v, *g, *beta;
	real                *state;
	int64_t              tokens, key_heads, value_heads, dk, dv;
	double               scale;
	int64_t              past;
	const int64_t       *begins;
	const vn_experiment *x; /* NULL: as usual; with x->delta.chunked, vn_delta_chunked computes it */
	int                  threads;
} REAL(vn_delta);

bool REAL(vn_delta_rule)(real *y, const REAL(vn_delta) * a);

/* The same in float32, in chunks of VN_DELTA_CHUNK tokens, as trained models run it. For a chunk of
 * n tokens, with c[i] the sum of g[0..i], its own k, q, v and beta, and S the state before it:
 *   A[i,j] = beta[i] (k[i].k[j]) exp(c[i] - c[j]), j < i
 *   P[i,j] = scale (q[i].k[j]) exp(c[i] - c[j]), j <= i
 *   (I + A) U = beta v;  (I + A) W = beta exp(c) k;  N = U - W S
 *   y = scale exp(c) q S + P N;  S = exp(c[n-1]) S + (exp(c[n-1] - c) k)^T N
 * Of an experiment, only `chunked` and `drawn` are supported. Returns false without memory. (Yang,
 * Kautz, Hatamizadeh: Gated Delta Networks, 2024, 3.3.) */
bool REAL(vn_delta_chunked)(real *y, const REAL(vn_delta) * a);

/* Elementwise on n numbers. Activations (specs/models.md) are computed in double, unless
 * e->act.rounding says otherwise. */
void REAL(vn_act_apply)(real *y, const real *x, vn_act act, int64_t n, int threads);
/* y = f(gate) * up, with f from c->act. in: gate, up; up NULL: only f(gate). */
void REAL(vn_gated)(real *y, const real *const in[2], const vn_consts *c, const vn_experiment *e, int64_t n,
                    int threads);
void REAL(vn_add)(real *y, const real *a, const real *b, int64_t n, int threads);
/* y = scale x or, if cap is not 0, cap tanh(scale x / cap), with scale and cap from c->scale. */
void REAL(vn_multiply)(real *y, const real *x, const vn_consts *c, const vn_experiment *e, int64_t n, int threads);

/* The k columns of the largest numbers of each row, the largest first.   in: x (T,E), and bias (E)
 * or NULL   y (T,k)
 * Of equal numbers the first column comes first; a NaN is the largest. e->top_k.skip leaves out
 * the first. With sigmoid: of sigmoid(x) + bias. With groups: those of E/groups neighbours each
 * whose sums of their `best` largest numbers are largest are kept. Returns false without memory. */
bool REAL(vn_top_k)(real *y, const real *const in[2], int64_t T, const vn_consts *c, const vn_experiment *e,
                    int threads);

/* Weights of chosen experts.   in: logits (T,E), ids (T,k), and bias (E) or NULL   y (T,k)
 *   y[t,s] = exp(logits[t,i]) / sum_e exp(logits[t,e]), i = ids[t,s]; 0 if there is no expert i
 *   sigmoid: y[t,s] = sigmoid(logits[t,i])
 *   normalised: y[t,s] / sum_s y[t,:]; then times the scale */
void REAL(vn_route)(real *y, const real *const in[3], int64_t T, int64_t k, const vn_consts *c, const vn_experiment *e,
                    int threads);

/* What chosen experts make of each token.   rows (T,D)   ids (T,k)   y (T,k,D)
 *   y[t,s] = down_i (f(gate_i x[t]) * up_i x[t]), i = ids[t,s]; 0 if there is no expert i
 * with a limit:  f(min(gate_i x[t], limit)) * (clip(up_i x[t], -limit, limit) + shift)
 * product: y (n,M) of x (n,N) and the weights of one kind of an expert, as of VN_OP_LINEAR; false:
 * no memory. gate x, up x and f(gate) up are rounded to the storage format. Experiments: past,
 * begins: of vn_call_row; a capacity is of each call. Returns false without memory. */
typedef struct REAL(vn_experts_in) {
	const real *rows, *ids;
	int64_t     T, k, D, F;
	bool (*product)(void *context, int kind, int64_t expert, const real *x, int64_t n, real *y);
	void                *context;
	const vn_consts     *c;
	const vn_experiment *x; /* NULL: as usual */
	vn_policy            policy;
	int64_t              past;
	const int64_t       *begins;
	int                  threads;
} REAL(vn_experts_in);
bool REAL(vn_experts)(real *y, const REAL(vn_experts_in) * a);

/* Weighted sums, of k slots.   in: x (T,k,D), weights (T,k)   y (T,D)
 *   y[t,d] = sum_s weights[t,s] x[t,s,d] */
void REAL(vn_combine)(real *y, const real *const in[2], int64_t T, int64_t D, const vn_consts *c,
                      const vn_experiment *e, int threads);

/* The row of the token before.   x, y (T,N)   state (N)
 *   y[0] = state   y[t] = x[t-1]   then state = x[T-1]
 * Experiments, e->delay: own (y[t] = x[t]); forgets (the state of earlier calls is 0). past,
 * begins: of vn_call_row. */
typedef struct REAL(vn_delayed) {
	const real          *x;
	real                *state;
	int64_t              T, N, past;
	const int64_t       *begins;
	const vn_experiment *e;
} REAL(vn_delayed);
void REAL(vn_delay)(real *y, const REAL(vn_delayed) * a);

/* Rearranges rows for an experiment: vn_rows_form.   in: x, other; x, other, y (T,N), after `past`
 * rows of earlier calls */
void REAL(vn_rows)(real *y, const real *const in[2], int64_t past, int64_t T, int64_t N, const vn_experiment *e,
                   int threads);

#if VN_REAL == 32
/* linear in double, rounded once, for small products (linear_wide.c). */
bool vn_linear_is_small(const vn_matrix *w, int64_t T);
bool vn_linear_wide(float *y, const vn_operands *f);

/* linear with the sum rounded to float16 after every term, and after the bias. */
bool vn_linear_acc16(float *y, const vn_operands *f);
#endif
