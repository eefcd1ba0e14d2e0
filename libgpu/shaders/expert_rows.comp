#version 460
// expert_rows: which pairs of a token and a slot each expert has, for experts.glsl.
//
//   rows[e] = how many pairs have an expert before e      e <= E
//   rows[E+1+r] = pair r of all, sorted by expert         r < rows[E]
//   y[i,:] = 0                                            for pairs i that have no expert
//
//   ids (P) float in     rows (E+1+P) int out     y (P,D) real out
//   push      vn_push_expert_rows
//   dispatch  x: E + 1 workgroups, one for each expert and one for the pairs without; in strides
//             of the grid
//
// The order of an expert's pairs is not fixed. It decides in which row of a tile a pair is
// computed, and that changes no bit of the result.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

const uint LANES = 256;
layout(local_size_x = 256) in;
PUSH(vn_push_expert_rows);

shared uint before, taken;

bool has_expert(float id) { return id >= 0.0 && id < float(p.E); }

// Expert e's pairs follow those of the experts before it.
void list_pairs(uint e)
{
	uint mine = 0;

	for (uint i = gl_LocalInvocationID.x; i < p.P; i += LANES)
		mine += has_expert(p.ids.v[i]) && uint(p.ids.v[i]) < e ? 1 : 0;
	if (mine > 0)
		atomicAdd(before, mine);
	barrier();
	if (gl_LocalInvocationID.x == 0)
		p.rows.v[e] = int(before);
	for (uint i = gl_LocalInvocationID.x; e < p.E && i < p.P; i += LANES)
		if (has_expert(p.ids.v[i]) && uint(p.ids.v[i]) == e)
			p.rows.v[p.E + 1 + before + atomicAdd(taken, 1)] = int(i);
}

void clear_others()
{
	for (uint i = 0; i < p.P; i++)
		if (!has_expert(p.ids.v[i]))
			for (uint d = gl_LocalInvocationID.x; d < p.D; d += LANES)
				put(p.y, i * p.D + d, 0.0);
}

void main()
{
	for (uint e = gl_WorkGroupID.x; e <= p.E; e += gl_NumWorkGroups.x) {
		if (gl_LocalInvocationID.x == 0)
			before = taken = 0;
		barrier();
		list_pairs(e);
		if (e == p.E && before < p.P) // rare, and a long loop
			clear_others();
		barrier();
	}
}
