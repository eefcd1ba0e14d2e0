/* replay_columns.h: finds operations that are right except for the order of their columns. */
#ifndef VN_COMPARE_REPLAY_COLUMNS_H
#define VN_COMPARE_REPLAY_COLUMNS_H

#include "compare/replay/replay_state.h"

/* Is node k right except for the order of its columns? If not, inputs whose columns were reordered
 * are restored to the captured order, unless another layer proves the order for that point. */
vn_status vn_replay_columns(vn_replay *r, int k, vn_error *err);
/* After a walk: is something wrong that was taken as captured, although another layer proves an
 * order for such a point that was not yet assumed? Then fills `assumed` for another walk. */
bool      vn_replay_columns_again(const vn_replay *r, vn_column_order assumed[VN_N_POINTS]);

#endif
