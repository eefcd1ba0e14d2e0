// attn_probs_experiment.glsl: main() of attn_probs.comp, with a softmax that no family has
// (softmax_experiment.glsl). With such a softmax, q holds the queries of the whole call.
#include "softmax_experiment.glsl"

void other_row(uint i)
{
	row_sums(i, p.h0);
	for (uint c = gl_LocalInvocationID.x; c < p.n_keys; c += LANES)
		put(p.y, i * p.n_keys + c, visible(i, p.j0 + c) ? probability(i, p.h0, p.j0 + c) : 0.0);
	barrier(); // tops and sums are read above
}

void main()
{
	for (uint i = gl_WorkGroupID.x; i < p.T; i += gl_NumWorkGroups.x) {
		if (other_softmax()) {
			other_row(i);
			continue;
		}
		row(i);
	}
}
