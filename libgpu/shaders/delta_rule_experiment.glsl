// delta_rule_experiment.glsl: the parts of delta_rule.comp that an experiment changes
// (vn_experiment.delta).
float chunk[MINE]; // a state that is S at every 64th token and decays between

uint key_head(uint h) { return p.head_map == VN_HEADS_MODULO ? h % p.nk : h / (p.nv / p.nk); }

float kept(uint t, float s) { return p.restart != 0 && (p.P + t) % p.restart == 0 ? 0.0 : s; }

float decay_of(float g) { return p.form == VN_DELTA_NO_DECAY ? 1.0 : p.form == VN_DELTA_FACTOR ? g : exp_(g); }
float first(float g)    { return p.form == VN_DELTA_DECAY_LATE ? 1.0 : decay_of(g); }
float late(float g)     { return p.form == VN_DELTA_DECAY_LATE ? decay_of(g) : 1.0; }

float memory(uint t, uint i, float f, float before, float after)
{
	if (p.form != VN_DELTA_UNSOLVED)
		return p.form == VN_DELTA_MEMORY_FIRST ? before : after;
	chunk[i] = (t % 64 == 0 ? before : chunk[i]) * f;
	return chunk[i];
}

float change(float beta, float v, float m)
{
	m = p.form == VN_DELTA_NO_DELTA ? 0.0 : m;
	return p.form == VN_DELTA_BETA_KEYS ? v - beta * m : p.form == VN_DELTA_BETA_VALUES ? beta * v - m : beta * (v - m);
}

float seen(float before, float after) { return p.form == VN_DELTA_READ_FIRST ? before : after; }

uint place(uint h, uint row, uint col)
{
	return p.transposed != 0 ? (h * p.dv + col) * p.dk + row : (h * p.dk + row) * p.dv + col;
}
