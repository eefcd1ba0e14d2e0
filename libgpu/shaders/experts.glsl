// experts.glsl: a product with the matrices of experts, one for each pair of a token and a slot.
//
//   GATED: x (T,N), w and w_up (E: the address of each matrix (M,N)) -> gated (P,M), sorted rows
//   else   x (P,N), sorted rows, w (E: as above) -> y (P,M), a row for each pair
//   b and b_up (E: the address of each bias (M)), or none
//
// p.T is P, the number of pairs, k of each token. rows: expert_rows.comp. A tile has rows
// [t0, rows_end) of one expert, at most as many as it is high, and that expert's matrices.
#extension GL_EXT_buffer_reference_uvec2 : require
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Matrices { uvec2 v[]; };

Real w_now, b_now, w_up_now, b_up_now;
uint rows_end;
#define W    w_now
#define B    b_now
#define W_UP w_up_now
#define B_UP b_up_now

void use_expert(uint e)
{
	w_now = b_now = Real(Matrices(p.w).v[e]); // without a bias b_now is not read, but an address
	if (p.has_bias != 0)
		b_now = Real(Matrices(p.b).v[e]);
#if GATED
	w_up_now = b_up_now = Real(Matrices(p.w_up).v[e]);
	if (p.up_has_bias != 0)
		b_up_now = Real(Matrices(p.b_up).v[e]);
#endif
}

// Gate and up as op.def has them: the two numbers in `sums` are the limit (0: none) and the shift.
void limit(inout float gate, inout float up)
{
	const vec2 by = uintBitsToFloat(uvec2(p.sums));

	if (by.x > 0.0) { // without min and max, which may lose a NaN
		gate = gate > by.x ? by.x : gate;
		up = up > by.x ? by.x : up < -by.x ? -by.x : up;
	}
	up += by.y;
}

uint rows_before(uint e) { return uint(p.rows.v[e]); }
uint pair_of(uint row)   { return uint(p.rows.v[p.E + 1 + row]); }

#if GATED
uint x_row_of(uint row) { return pair_of(row) / p.k; }
uint y_row_of(uint row) { return row; }
#else
uint x_row_of(uint row) { return row; }
uint y_row_of(uint row) { return pair_of(row); }
#endif

// The tiles of expert e are rows_before(e) / height + e and those that follow: as many numbers as
// the expert can need, wherever its rows begin, and each expert has numbers of its own.
uint first_tile(uint e, uint height) { return rows_before(e) / height + e; }

// How many numbers all experts have.
uint count_tiles(uint height) { return first_tile(p.E, height); }

// Returns the first row of a tile, and sets its expert. If it is not below rows_end, the tile is
// empty.
uint find_tile(uint tile, uint height)
{
	uint e = 0, above = p.E;

	while (above - e > 1) {
		const uint middle = (e + above) / 2;
		if (first_tile(middle, height) <= tile)
			e = middle;
		else
			above = middle;
	}
	use_expert(e);
	rows_end = rows_before(e + 1);
	return rows_before(e) + (tile - first_tile(e, height)) * height;
}
