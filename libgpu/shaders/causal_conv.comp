#version 460
// causal_conv: causal convolution of each channel by itself, then silu.
//
//   y[t,c] = silu(sum_j w[c,j] r[t+j,c])      r: before, then x
//
//   x (T,X) real in     w (X,J) real in     before (J-1,X) real in     y (T,X) real out
//   push      vn_push_causal_conv
//   dispatch  any x; one lane an element, in strides of the grid
//
// The last of the J weights belongs to the newest token. This shader does not store the rows of x
// that the next call needs: they are copied.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_causal_conv);

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.T * p.X; e += gl_NumWorkGroups.x * 64) {
		const uint t = e / p.X, c = e % p.X;
		float sum = 0.0;
		for (uint j = 0; j < p.J; j++) {
			const uint row = t + j;
			// each load is converted to float by itself: selecting between halves would be
			// arithmetic in half
			const float r = row < p.J - 1 ? float(p.before.v[row * p.X + c])
			                                : float(p.x.v[(row - (p.J - 1)) * p.X + c]);
			sum += float(p.w.v[c * p.J + j]) * r;
		}
		put(p.y, e, silu(sum));
	}
}
