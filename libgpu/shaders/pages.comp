#version 460
// pages: copies numbers between token-major order and the blocks of a pool.
//
//   GET 0, paged_put   pool[table[p/B], g, p mod B, d] = rows[e]
//   GET 1, paged_get   rows[e] = pool[table[p/B], g, p mod B, d]
//                      where (p, g, d) is element `at` + e of (S,G,K)
//
//   rows  (n) real        pool  (blocks, G, B, K) real        table (blocks of the sequence) uint
//   push      vn_push_pages
//   dispatch  any x; one lane an element, in strides of the grid
//
// Bits are copied, not numbers.
#extension GL_GOOGLE_include_directive : require
#include "real.glsl"

PUSH(vn_push_pages);

layout(local_size_x = 64) in;

void main()
{
	for (uint e = gl_GlobalInvocationID.x; e < p.n; e += gl_NumWorkGroups.x * 64) {
		const uint i = p.at + e, t = i / (p.G * p.K), g = i / p.K % p.G, d = i % p.K;
		const uint slot = ((uint(p.table.v[t / p.B]) * p.G + g) * p.B + t % p.B) * p.K + d;
#if GET
		p.rows.v[e] = p.pool.v[slot];
#else
		p.pool.v[slot] = p.rows.v[e];
#endif
	}
}
