// rope_experiment.glsl: the pairs of rope.comp, in any pairing of an experiment (vn_pairing).
// VN_PAIR_NEIGHBOURS: columns 2i and 2i+1; VN_PAIR_ACROSS: i and i + K/2.
uint apart()      { return p.pairing == VN_PAIR_NEIGHBOURS ? 1 : p.pairing == VN_PAIR_ACROSS ? p.K / 2 : p.R / 2; }
bool low(uint d)  { return p.pairing == VN_PAIR_NEIGHBOURS ? d % 2 == 0 : d < apart(); }
uint pair(uint d) { return p.pairing == VN_PAIR_NEIGHBOURS ? d / 2 : low(d) ? d : d - apart(); }

bool by_four()    { return false; }
void four(uint u) { }
