// parts.glsl: divides the keys of attention into parts, so that several workgroups share a query.
//
// Part s holds keys [j0 + s n_keys, j0 + (s+1) n_keys), s < h0. With one part a
// context is written to y, as real. With more, y is float, (T,H,parts,U+2): U
// weighted sums that are not yet divided by the sum of weights, then the maximum
// that the weights are relative to, and the sum of weights. Only parts that hold a
// key that some query of the workgroup may see are written; attention_join reads
// those of them that its own query sees.
uint parts()           { return p.h0; }
uint part_begin(uint s) { return p.j0 + s * p.n_keys; }
uint part_end(uint s)   { return p.j0 + (s + 1) * p.n_keys; }

// The parts that hold keys of query i: [parts_begin, parts_end).
uint parts_begin(uint i) { return (keys_begin(i) - p.j0) / p.n_keys; }
uint parts_end(uint i)   { return (keys_end(i) - p.j0 + p.n_keys - 1) / p.n_keys; }

// Where part s of query i of head h begins.
uint part_at(uint i, uint h, uint s) { return ((i * p.H + h) * p.h0 + s) * (p.U + 2); }
