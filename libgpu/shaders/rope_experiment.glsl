// rope_experiment.glsl: the pairs of rope.comp, in any pairing of an experiment (vn_pairing).
const uint NEIGHBOURS = 1, ACROSS = 2; // (2i, 2i+1); (i, i + K/2)

uint apart()      { return p.pairing == NEIGHBOURS ? 1 : p.pairing == ACROSS ? p.K / 2 : p.R / 2; }
bool low(uint d)  { return p.pairing == NEIGHBOURS ? d % 2 == 0 : d < apart(); }
uint pair(uint d) { return p.pairing == NEIGHBOURS ? d / 2 : low(d) ? d : d - apart(); }

bool by_four()    { return false; }
void four(uint u) { }
