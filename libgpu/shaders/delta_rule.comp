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
#if EXPERIMENT
	uint  form, head_map, restart, P; // vn_variant.delta, form & 256: turned here; P: the first token's position
#endif
} p;

#if EXPERIMENT
#include "delta_experiment.glsl"
#else
uint  key_head(uint h)                                           { return h / (p.nv / p.nk); }
float kept(uint t, float s)                                      { return s; }             // of what the state was
// its factor before the update
float first(float g)                                             { return exp_(g); }
float late(float g)                                              { return 1.0; }           // and behind it
// that m is read from; f: first(g)
float memory(uint t, uint i, float f, float before, float after) { return after; }
float change(float beta, float v, float m)                       { return beta * (v - m); }
float seen(float before, float after)                            { return after; }         // by the output
uint  place(uint h, uint row, uint col)                          { return (h * p.dk + row) * p.dv + col; } // in after
#endif

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
	const uint head = key_head(h), state = h * p.dk * p.dv + col;
	const bool real_ = col < p.dv; // lanes without a column come along for the barriers
	float s[MINE];

	[[unroll]] for (uint i = 0; i < MINE; i++) {
		const uint row = i * PARTS + part;
		s[i] = real_ && row < p.dk ? p.before.v[state + row * p.dv] : 0.0;
	}
	load(0, head);
	barrier();

	for (uint t = 0; t < p.T; t++) {
		const uint  at = t * p.nv + h, now = t % 2;
		const float g = p.g.v[at], decay = first(g), behind = late(g);
		float m = 0.0, o = 0.0;

		[[unroll]] for (uint i = 0; i < MINE; i++)
			if (i * PARTS + part < p.dk) {
				const float old = kept(t, s[i]);
				s[i] = old * decay;
				m += ks[now][i * PARTS + part] * memory(t, i, decay, old, s[i]);
			}
		fold_m[id] = m;
		if (t + 1 < p.T)
			load(t + 1, head);
		barrier();
		m = 0.0;
		for (uint n = 0; n < PARTS; n++)
			m += fold_m[n * COLS + c];
		const float beta = float(p.beta.v[at]), v = real_ ? float(p.v.v[at * p.dv + col]) : 0.0;
		const float d = real_ ? change(beta, v, m) : 0.0;

		[[unroll]] for (uint i = 0; i < MINE; i++)
			if (i * PARTS + part < p.dk) {
				const float old = s[i];
				s[i] = (old + ks[now][i * PARTS + part] * d) * behind;
				o += qs[now][i * PARTS + part] * seen(old, s[i]);
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
			p.after.v[place(h, i * PARTS + part, col)] = s[i];
	barrier(); // qs and ks are read above and written by the next block
}

void main()
{
	for (uint h = gl_WorkGroupID.y; h < p.nv; h += gl_NumWorkGroups.y)
		for (uint col = gl_WorkGroupID.x * COLS; col < p.dv; col += gl_NumWorkGroups.x * COLS)
			block(h, col);
}
