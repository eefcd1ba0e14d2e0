/* cluster_none.c: a build without MPI; see cluster.h. */
#include "libref/base/cluster.h"

vn_status vn_cluster_share(const vn_cluster_job *job, bool *first, vn_error *err)
{
	*first = true;
	return vn_fail(err, VN_ERR_UNSUPPORTED,
	               "%d processes were started together, but this vernier was built without MPI (-DVERNIER_MPI=ON): %s",
	               vn_cluster_size(), job->instead);
}
