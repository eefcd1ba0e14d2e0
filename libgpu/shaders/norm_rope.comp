#version 460
// norm_rope: a root-mean-square norm of every head and its rotary position embedding, one workgroup
// per head of a token.
//
//   y[r,n] = (offset + g[n]) * x[r,n] / sqrt(mean_n(x[r,:]^2) + eps)
//   z[r,:] = y[r,:], rotated as by rope.comp for token r / H
//
//   x (T H,K) real in     g (K) real in     table (T,R/2,2) float in: c, s
//   y, z (T H,K) real out
//   push      vn_push_norm_rope
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// The bits are those of rms_norm and rope run one by one: the stored (rounded) norm is rotated.
// K is at most WIDEST.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "stored.glsl"

const uint LANES = 128, WIDEST = 256;
layout(local_size_x = 128) in;
PUSH(vn_push_norm_rope);
#include "root.glsl"
#include "fold.glsl"
#include "squares.glsl"

shared float normed_row[WIDEST];

void rotate(uint r)
{
	const uint half_ = p.R / 2;

	for (uint d = gl_LocalInvocationID.x; d < p.K; d += LANES) {
		const uint  i = d < half_ ? d : d - half_, at = (r / p.H * half_ + i) * 2;
		const float a = normed_row[d];
		if (i >= half_) {
			put(p.z, r * p.K + d, a);
			continue;
		}
		const float c = p.table.v[at], s = p.table.v[at + 1], b = normed_row[d < half_ ? d + half_ : d - half_];
		precise const float rotated = d < half_ ? a * c - b * s : a * c + b * s;
		put(p.z, r * p.K + d, rotated);
	}
}

void main()
{
	for (uint r = gl_WorkGroupID.x; r < p.rows; r += gl_NumWorkGroups.x) {
		const float root = root_of(fold_sum(squares(r * p.K, p.K, p.K % 8 == 0)), float(p.K));
		for (uint n = gl_LocalInvocationID.x; n < p.K; n += LANES) {
			const float x = float(p.x.v[r * p.K + n]) / root;
			normed_row[n] = put_stored(p.y, r * p.K + n, (p.offset + float(p.g.v[n])) * x);
		}
		barrier();
		rotate(r);
	}
}
