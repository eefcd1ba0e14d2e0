#version 460
// delta_rule: the gated delta rule, token after token, a few columns of one head's state a workgroup.
//
//   S = exp(g[t,h]) S     m = k[t]^T S     d = beta[t,h] (v[t,h] - m)     S = S + k[t] d^T
//   y[t,h] = scale * q[t]^T S                        q, k of head h / (nv/nk)
//
//   q, k (T,nk,dk) float in     v (T,nv,dv) real in     g (T,nv) float in     beta (T,nv) real in
//   before (nv,dk,dv) float in     after (nv,dk,dv) float out     y (T,nv,dv) real out
//   push      vn_push_delta_rule
//   dispatch  x: blocks of COLS columns, y: value heads; both in strides of the grid
//
// With UNSOLVED, an experiment's, m is read from a state that is S at every 64th token and decays between.
// form & 256: after is (nv,dv,dk).
//
// dk is at most 256. Columns of a state never meet. A lane keeps every PARTS'th row of one column in
// registers; the PARTS lanes of a column add what they have in a fixed order, so the order of a sum depends
// on PARTS alone and a device repeats itself bit for bit. Two barriers a token: q and k of the next one
// come in while this one is summed.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint PARTS = 8, COLS = 16, LANES = PARTS * COLS, DKMAX = 256, MINE = DKMAX / PARTS;
layout(local_size_x = 128) in;
layout(push_constant) uniform Push {
	Float q, k;
	Real  v;
	Float g;
	Real  beta;
	Float before, after;
	Real  y;
	uint  T, nk, nv, dk, dv;
	float scale;
	uint  form, head_map, restart, P; // for experiments: vn_delta_form, vn_head_map; P: the first token's position
} p;

const uint NO_DECAY = 1, FACTOR = 2, DECAY_LATE = 3, READ_FIRST = 4, MEMORY_FIRST = 5, NO_DELTA = 6, BETA_KEYS = 8, BETA_VALUES = 9;

shared float qs[2][DKMAX], ks[2][DKMAX];
shared float fold_m[LANES], fold_o[LANES];

void load(uint t, uint head)
{
	const uint row = (t * p.nk + head) * p.dk;
	for (uint i = gl_LocalInvocationID.x; i < p.dk; i += LANES) {
		qs[t % 2][i] = p.q.v[row + i];
		ks[t % 2][i] = p.k.v[row + i];
	}
}

void block(uint h, uint col0)
{
	const uint id = gl_LocalInvocationID.x, part = id / COLS, c = id % COLS, col = col0 + c;
	const uint head = p.head_map == 1 ? h % p.nk : h / (p.nv / p.nk), state = h * p.dk * p.dv + col;
	const uint form = p.form & 0xFFu;
	const bool turned = (p.form & 0x100u) != 0;
	const bool real_ = col < p.dv; // lanes without a column come along for the barriers
	float s[MINE];
#if UNSOLVED
	float chunk[MINE];
#endif

	[[unroll]] for (uint i = 0; i < MINE; i++) {
		const uint row = i * PARTS + part;
		s[i] = real_ && row < p.dk ? p.before.v[state + row * p.dv] : 0.0;
	}
	load(0, head);
	barrier();

	for (uint t = 0; t < p.T; t++) {
		const uint  at = t * p.nv + h, now = t % 2;
		const float g = p.g.v[at], decay = form == NO_DECAY ? 1.0 : form == FACTOR ? g : exp_(g);
		const float first = form == DECAY_LATE ? 1.0 : decay, late = form == DECAY_LATE ? decay : 1.0;
		const bool  lost = p.restart != 0 && (p.P + t) % p.restart == 0;
		float m = 0.0, o = 0.0;

		[[unroll]] for (uint i = 0; i < MINE; i++)
			if (i * PARTS + part < p.dk) {
				const float old = lost ? 0.0 : s[i];
				s[i] = old * first;
#if UNSOLVED
				chunk[i] = (t % 64 == 0 ? old : chunk[i]) * first;
				m += ks[now][i * PARTS + part] * chunk[i];
				continue;
#endif
				m += ks[now][i * PARTS + part] * (form == MEMORY_FIRST ? old : s[i]);
			}
		fold_m[id] = m;
		if (t + 1 < p.T)
			load(t + 1, head);
		barrier();
		m = 0.0;
		for (uint n = 0; n < PARTS; n++)
			m += fold_m[n * COLS + c];
		if (form == NO_DELTA)
			m = 0.0;
		const float beta = float(p.beta.v[at]), v = real_ ? float(p.v.v[at * p.dv + col]) : 0.0;
		const float d = !real_ ? 0.0 : form == BETA_KEYS ? v - beta * m : form == BETA_VALUES ? beta * v - m : beta * (v - m);

		[[unroll]] for (uint i = 0; i < MINE; i++)
			if (i * PARTS + part < p.dk) {
				const float old = s[i];
				s[i] = (old + ks[now][i * PARTS + part] * d) * late;
				o += qs[now][i * PARTS + part] * (form == READ_FIRST ? old : s[i]);
			}
		fold_o[id] = o;
		barrier();
		if (part == 0 && real_) {
			o = 0.0;
			for (uint n = 0; n < PARTS; n++)
				o += fold_o[n * COLS + c];
			put(p.y, at * p.dv + col, p.scale * o);
		}
	}

	[[unroll]] for (uint i = 0; i < MINE; i++)
		if (real_ && i * PARTS + part < p.dk)
			p.after.v[turned ? (h * p.dv + col) * p.dk + i * PARTS + part : state + (i * PARTS + part) * p.dv] = s[i];
	barrier(); // qs and ks are read above and written by the next block
}

void main()
{
	for (uint h = gl_WorkGroupID.y; h < p.nv; h += gl_NumWorkGroups.y)
		for (uint col = gl_WorkGroupID.x * COLS; col < p.dv; col += gl_NumWorkGroups.x * COLS)
			block(h, col);
}
