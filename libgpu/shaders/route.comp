#version 460
// route: the weights of the experts that were chosen for each token.
//
//   y[t,s] = exp(x[t,ids[t,s]] - max x[t,:]) / sum_e exp(x[t,e] - max x[t,:])
//   normalised: the sum is that of the chosen e alone, once for each slot
//   sigmoid: sigmoid(x[t,ids[t,s]]), divided by their sum if normalised; all times the scale
//
//   x (T,E) real in, with WIDE_IN float     ids (T,k) float in
//   y (T,k) real out, with WIDE float
//   push      vn_push_route
//   dispatch  any x; a workgroup takes rows in strides of the grid
//
// An id that is no column's has weight 0. Lane i takes columns, or slots, i, i+LANES, ...; then the
// lanes fold in a fixed order.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 64;
layout(local_size_x = 64) in;
PUSH(vn_push_route);
#include "fold.glsl"

#if WIDE_IN
#define FROM Float(p.x)
#else
#define FROM p.x
#endif

float share_of(uint row, float id, float top)
{
	if (!(id >= 0.0 && id < float(p.E)))
		return 0.0;
	const float x = float(FROM.v[row + uint(id)]);
	return p.sigmoid != 0 ? 1.0 / (1.0 + exp_(-x)) : exp_(x - top);
}

void main()
{
	const uint lane = gl_LocalInvocationID.x;

	for (uint t = gl_WorkGroupID.x; t < p.T; t += gl_NumWorkGroups.x) {
		const uint row = t * p.E, at = t * p.k;
		float top = -INFINITY, sum = 0.0;
		for (uint e = lane; e < p.E; e += LANES)
			top = max(top, float(FROM.v[row + e]));
		top = fold_max(top);
		if (p.normalised != 0)
			for (uint s = lane; s < p.k; s += LANES)
				sum += share_of(row, p.ids.v[at + s], top);
		else
			for (uint e = lane; e < p.E; e += LANES)
				sum += exp_(float(FROM.v[row + e]) - top);
		sum = fold_sum(sum);
		if (p.sigmoid != 0 && p.normalised == 0)
			sum = 1.0;
		for (uint s = lane; s < p.k; s += LANES) {
			const float y = share_of(row, p.ids.v[at + s], top) / sum * p.scale;
#if WIDE
			Float(p.y).v[at + s] = y;
#else
			put(p.y, at + s, y);
#endif
		}
	}
}
