/* cluster.c: which launcher started this process; see cluster.h. */
#include "libref/base/cluster.h"

#include <stdlib.h>

static int number_in(const char *variable)
{
	const char *text = getenv(variable);
	char       *end;
	const long  n = text ? strtol(text, &end, 10) : 0;

	return text && *text && !*end && n > 0 && n < 1 << 20 ? (int)n : 0;
}

int vn_cluster_size(void)
{
	const int open_mpi = number_in("OMPI_COMM_WORLD_SIZE"), mpich = number_in("PMI_SIZE");
	const int slurm = getenv("PMIX_RANK") ? number_in("SLURM_NTASKS") : 0; /* srun --mpi=pmix */

	if (open_mpi > 1)
		return open_mpi;
	if (mpich > 1)
		return mpich;
	return slurm > 1 ? slurm : 1;
}
