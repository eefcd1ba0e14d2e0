// delta_rule_experiment.glsl: the parts of delta_rule.comp that an experiment changes
// (vn_experiment.delta).
const uint NO_DECAY = 1, FACTOR = 2, DECAY_LATE = 3, READ_FIRST = 4, MEMORY_FIRST = 5, NO_DELTA = 6,
           UNSOLVED = 7, BETA_KEYS = 8, BETA_VALUES = 9;

float chunk[MINE]; // a state that is S at every 64th token and decays between

uint key_head(uint h) { return p.head_map == 1 ? h % p.nk : h / (p.nv / p.nk); }

float kept(uint t, float s) { return p.restart != 0 && (p.P + t) % p.restart == 0 ? 0.0 : s; }

float decay_of(float g) { return p.form == NO_DECAY ? 1.0 : p.form == FACTOR ? g : exp_(g); }
float first(float g)    { return p.form == DECAY_LATE ? 1.0 : decay_of(g); }
float late(float g)     { return p.form == DECAY_LATE ? decay_of(g) : 1.0; }

float memory(uint t, uint i, float f, float before, float after)
{
	if (p.form != UNSOLVED)
		return p.form == MEMORY_FIRST ? before : after;
	chunk[i] = (t % 64 == 0 ? before : chunk[i]) * f;
	return chunk[i];
}

float change(float beta, float v, float m)
{
	m = p.form == NO_DELTA ? 0.0 : m;
	return p.form == BETA_KEYS ? v - beta * m : p.form == BETA_VALUES ? beta * v - m : beta * (v - m);
}

float seen(float before, float after) { return p.form == READ_FIRST ? before : after; }

uint place(uint h, uint row, uint col)
{
	return p.transposed != 0 ? (h * p.dv + col) * p.dk + row : (h * p.dk + row) * p.dv + col;
}
