// causal_conv_experiment.glsl: the parts of causal_conv.comp that an experiment changes
// (vn_experiment.conv).
uint  row_of(uint t, uint j)       { return t + j + p.ahead; }
bool  there(uint row)              { return row < p.last + p.J - 1 && (row >= p.J - 1 || p.forgets == 0); }
float activated(uint c, float sum) { return p.linear != 0 && c + 1 >= p.linear ? sum : silu(sum); }
