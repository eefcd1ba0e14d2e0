#version 460
// delta_rule: the gated delta rule, token after token. A workgroup takes a few columns of
// one head's state.
//
//   S = exp(g[t,h]) S     m = k[t]^T S     d = beta[t,h] (v[t,h] - m)     S = S + k[t] d^T
//   y[t,h] = scale * q[t]^T S                        q, k of head h / (nv/nk)
//
//   q, k (T,nk,dk) float in     v (T,nv,dv) real in     g (T,nv) float in     beta (T,nv) real in
//   before (nv,dk,dv) float in     after (nv,dk,dv) float out     y (T,nv,dv) real out
//   push      vn_push_delta_rule
//   dispatch  x: blocks of COLS columns, y: value heads; both in strides of the grid
//
// dk is at most 256. Columns of a state are independent. PARTS lanes share a column; a lane keeps
// every PARTS'th group of four rows in registers. The lanes of a column add their sums in a fixed
// order, so the order of a sum depends on PARTS alone, and a device repeats itself bit for bit. The
// inputs of the next AHEAD tokens are loaded while these are summed. There is one barrier per
// token, for the sum m; outputs are folded AHEAD tokens at a time.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint PARTS = 8, COLS = 16, LANES = PARTS * COLS, DKMAX = 256, MINE = DKMAX / PARTS, FOURS = MINE / 4, AHEAD = 4;
const uint EACH = AHEAD * DKMAX / LANES;
layout(local_size_x = 128) in;
PUSH(vn_push_delta_rule);

// The row of a lane's i-th number.
uint row_of(uint i, uint part) { return (i / 4 * PARTS + part) * 4 + i % 4; }

// Data of AHEAD tokens, and of the AHEAD tokens after them.
shared vec4  qs[2][AHEAD][DKMAX / 4], ks[2][AHEAD][DKMAX / 4];
shared float vs[2][AHEAD][COLS], betas[2][AHEAD], decays[2][AHEAD];
shared float fold_m[2][LANES], fold_o[AHEAD][LANES];

float next_q[EACH], next_k[EACH], next_v, next_g, next_beta;

uint id() { return gl_LocalInvocationID.x; }

void fetch(uint t0, uint h, uint col0)
{
	const uint head = h / (p.nv / p.nk), n = id() % AHEAD, t = t0 + n;
	const uint tv = t0 + id() / COLS, col = col0 + id() % COLS;

	[[unroll]] for (uint e = 0; e < EACH; e++) {
		const uint at = id() + e * LANES, te = t0 + at / DKMAX, i = at % DKMAX, row = (te * p.nk + head) * p.dk;
		const bool there_ = te < p.T && i < p.dk;
		next_q[e] = there_ ? p.q.v[row + i] : 0.0;
		next_k[e] = there_ ? p.k.v[row + i] : 0.0;
	}
	// Each load is converted to float by itself: selecting between halves would be
	// arithmetic in half.
	next_v = 0.0;
	if (id() < AHEAD * COLS && tv < p.T && col < p.dv)
		next_v = float(p.v.v[(tv * p.nv + h) * p.dv + col]);
	next_g = 0.0;
	next_beta = 0.0;
	if (t < p.T) {
		next_g = p.g.v[t * p.nv + h];
		next_beta = float(p.beta.v[t * p.nv + h]);
	}
}

void keep(uint to)
{
	[[unroll]] for (uint e = 0; e < EACH; e++) {
		const uint at = id() + e * LANES, i = at % DKMAX;
		qs[to][at / DKMAX][i / 4][i % 4] = next_q[e];
		ks[to][at / DKMAX][i / 4][i % 4] = next_k[e];
	}
	if (id() < AHEAD * COLS)
		vs[to][id() / COLS][id() % COLS] = next_v;
	if (id() < AHEAD) {
		decays[to][id()] = exp_(next_g);
		betas[to][id()] = next_beta;
	}
}

float s[MINE]; // of the state

// Number i: its product with k after the decay; its product with q after the update by d k.
float known1(uint i, float k, float decay)
{
	s[i] *= decay;
	return k * s[i];
}

float learnt1(uint i, float k, float d, float q)
{
	s[i] += k * d;
	return q * s[i];
}

// Same for half of the groups of four, from group f0 on, for token n of those in shared memory.
// Past dk, k and q are 0. All loads are issued together: none is in a branch.
vec4 known(uint now, uint n, uint f0, uint part, float decay)
{
	vec4 k[FOURS / 2], sum = vec4(0.0);

	[[unroll]] for (uint f = 0; f < FOURS / 2; f++)
		k[f] = ks[now][n][(f0 + f) * PARTS + part];
	[[unroll]] for (uint f = 0; f < FOURS / 2; f++) {
		const uint i = 4 * (f0 + f);
		sum += vec4(known1(i, k[f].x, decay), known1(i + 1, k[f].y, decay), known1(i + 2, k[f].z, decay),
		            known1(i + 3, k[f].w, decay));
	}
	return sum;
}

vec4 learnt(uint now, uint n, uint f0, uint part, float d)
{
	vec4 k[FOURS / 2], q[FOURS / 2], sum = vec4(0.0);

	[[unroll]] for (uint f = 0; f < FOURS / 2; f++) {
		k[f] = ks[now][n][(f0 + f) * PARTS + part];
		q[f] = qs[now][n][(f0 + f) * PARTS + part];
	}
	[[unroll]] for (uint f = 0; f < FOURS / 2; f++) {
		const uint i = 4 * (f0 + f);
		sum += vec4(learnt1(i, k[f].x, d, q[f].x), learnt1(i + 1, k[f].y, d, q[f].y),
		            learnt1(i + 2, k[f].z, d, q[f].z), learnt1(i + 3, k[f].w, d, q[f].w));
	}
	return sum;
}

float folded(float x[8]) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

void block(uint h, uint col0)
{
	const uint part = id() / COLS, c = id() % COLS, col = col0 + c;
	const uint state = h * p.dk * p.dv + col;
	const bool real_ = col < p.dv; // lanes without a column must also reach the barriers

	[[unroll]] for (uint i = 0; i < MINE; i++) {
		const uint row = row_of(i, part);
		s[i] = real_ && row < p.dk ? p.before.v[state + row * p.dv] : 0.0;
	}
	fetch(0, h, col0);
	keep(0);
	barrier();

	for (uint t0 = 0; t0 < p.T; t0 += AHEAD) {
		const uint now = t0 / AHEAD % 2;
		const bool more = t0 + AHEAD < p.T;
		if (more)
			fetch(t0 + AHEAD, h, col0);
		for (uint n = 0; n < min(AHEAD, p.T - t0); n++) {
			const float decay = decays[now][n];
			vec4  m4 = known(now, n, 0, part, decay), o4;
			float ms[PARTS];

			if (p.dk > DKMAX / 2)
				m4 += known(now, n, FOURS / 2, part, decay);
			fold_m[n % 2][id()] = (m4.x + m4.y) + (m4.z + m4.w);
			barrier();
			[[unroll]] for (uint e = 0; e < PARTS; e++)
				ms[e] = fold_m[n % 2][e * COLS + c];
			const float d = real_ ? betas[now][n] * (vs[now][n][c] - folded(ms)) : 0.0;

			o4 = learnt(now, n, 0, part, d);
			if (p.dk > DKMAX / 2)
				o4 += learnt(now, n, FOURS / 2, part, d);
			fold_o[n][id()] = (o4.x + o4.y) + (o4.z + o4.w);
		}
		if (more)
			keep(1 - now);
		barrier();
		const uint t = t0 + id() / COLS;
		if (id() < AHEAD * COLS && t < p.T && real_) {
			float os[PARTS];
			[[unroll]] for (uint e = 0; e < PARTS; e++)
				os[e] = fold_o[id() / COLS][e * COLS + c];
			put(p.y, (t * p.nv + h) * p.dv + col, p.scale * folded(os));
		}
	}

	[[unroll]] for (uint i = 0; i < MINE; i++)
		if (real_ && row_of(i, part) < p.dk)
			p.after.v[state + row_of(i, part) * p.dv] = s[i];
	barrier(); // shared memory is read above and written by the next block
}

void main()
{
	for (uint h = gl_WorkGroupID.y; h < p.nv; h += gl_NumWorkGroups.y)
		for (uint col = gl_WorkGroupID.x * COLS; col < p.dv; col += gl_NumWorkGroups.x * COLS)
			block(h, col);
}
