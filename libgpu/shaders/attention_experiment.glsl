// attention_experiment.glsl: context of one query of one head, with a softmax that no family has.
//
//   y[i,h,:] = sum_j p[i,j] v[j,g,:]     p: softmax_experiment.glsl
//
// q holds the queries of the whole call. The row's maximum and sum are computed first. Then keys
// are taken in tiles: a lane computes the probability of one key, later two columns of the context.
shared float tops[LANES], sums[LANES];

#include "softmax_experiment.glsl"

void row(uint i, uint h)
{
	const uint lane = gl_LocalInvocationID.x, keys = keys_end(i);
	float acc[2] = float[2](0.0, 0.0);

	row_sums(i, h);
	for (uint j0 = keys_begin(i); j0 < keys; j0 += LANES) {
		ps[lane] = j0 + lane < keys ? probability(i, h, j0 + lane) : 0.0;
		barrier();
		for (uint half_ = 0; half_ < 2; half_++) {
			const uint d = lane + half_ * LANES;
			for (uint c = 0; d < p.K && c < min(LANES, keys - j0); c++)
				acc[half_] += ps[c] * v_of(v_row(j0 + c, h), d);
		}
		barrier(); // ps is read above
	}
	for (uint half_ = 0; half_ < 2; half_++)
		if (lane + half_ * LANES < p.K)
			put(p.y, (i * p.H + h) * p.K + lane + half_ * LANES, acc[half_]);
	barrier(); // tops and sums are read above
}

void rows()
{
	for (uint h = gl_WorkGroupID.y; h < p.H; h += gl_NumWorkGroups.y)
		for (uint i = gl_WorkGroupID.x; i < p.T; i += gl_NumWorkGroups.x)
			row(i, h);
}
