#version 460
// attention_join: joins the partial contexts of a query (parts.glsl) to its context.
//
//   y[i,h,:] = sum_s exp(top_s - top) context_s / sum_s exp(top_s - top) sum_s
//   top: the largest top_s; exp(sinks[h] - top) is one term more of the divisor
//
//   q: parts (T,H,parts,U+2) float in (parts.glsl), at most LANES of them
//   sinks (H) real in, or none     y (T,H,U) real out
//   push      vn_push_attention; k and v are not read
//   dispatch  any x; a workgroup takes a head of a query, in strides of the grid
//
// Parts are summed in ascending order.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"
#include "mask.glsl"
#include "parts.glsl"

const uint LANES = 64;
layout(local_size_x = 64) in;
#include "fold.glsl"

shared float ws[LANES];

void join(uint i, uint h)
{
	const uint  lane = gl_LocalInvocationID.x, first = parts_begin(i), n = parts_end(i) - first;
	const uint  at = part_at(i, h, first), step = p.U + 2;
	Float part = Float(p.q);
	const float top = lane < n ? part.v[at + lane * step + p.U] : -INFINITY, most = fold_max(top);
	const float w = lane < n ? exp_(top - (most == -INFINITY ? 0.0 : most)) : 0.0;

	ws[lane] = w;
	const float own = lane < n ? w * part.v[at + lane * step + p.U + 1] : 0.0;
	const float sum = with_sink(fold_sum(own), most, h); // and ws is written
	for (uint d = lane; d < p.U; d += LANES) {
		float context = 0.0;
		for (uint s = 0; s < n; s++)
			context += ws[s] * part.v[at + s * step + d];
		put(p.y, (i * p.H + h) * p.U + d, context / sum);
	}
	barrier(); // ws is read above
}

void main()
{
	for (uint r = gl_WorkGroupID.x; r < p.T * p.H; r += gl_NumWorkGroups.x)
		join(r / p.H, r % p.H);
}
