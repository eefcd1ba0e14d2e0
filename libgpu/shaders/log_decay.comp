#version 460
// log_decay: the logarithm of the factor by which a state decays.
//
//   y[t,n] = -exp(A[n]) * softplus(x[t,n] + dt[n])      softplus(u) = log(1 + exp(u))
//
//   x (T,N) real in     A, dt (N) real in     y (T,N) float out
//   push      vn_push_log_decay
//   dispatch  any x; one lane an element, in strides of the grid
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

layout(local_size_x = 64) in;
PUSH(vn_push_log_decay);

// max(u,0) + log(1 + e), e = exp(-|u|) in [0,1]. Vulkan's log may be off by 2^-21 absolutely, which
// is all there is of a small e. log(1 + e) = 2 atanh(s), s = e / (2 + e) <= 1/3; the series to s^15
// leaves out 2e-9.
float softplus(float u)
{
	const float e = exp_(-abs(u)), s = e / (2.0 + e), q = s * s;
	float a = 1.0 / 15.0;
	a = a * q + 1.0 / 13.0;
	a = a * q + 1.0 / 11.0;
	a = a * q + 1.0 / 9.0;
	a = a * q + 1.0 / 7.0;
	a = a * q + 1.0 / 5.0;
	a = a * q + 1.0 / 3.0;
	a = a * q + 1.0;
	return (u > 0.0 ? u : 0.0) + 2.0 * s * a;
}

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.T * p.N; e += gl_NumWorkGroups.x * 64) {
		const uint n = e % p.N;
		p.y.v[e] = -exp_(float(p.A.v[n])) * softplus(float(p.x.v[e]) + float(p.dt.v[n]));
	}
}
