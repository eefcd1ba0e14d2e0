/* spin.h: how long an idle thread of OpenMP keeps its processor. */
#ifndef VN_LIBREF_BASE_SPIN_H
#define VN_LIBREF_BASE_SPIN_H

/* Call first thing in main, where a model will be run: threads that wait give the processor
 * up after some microseconds instead of ten milliseconds. A capture's writer runs beside them,
 * and so may other work. OpenMP reads GOMP_SPINCOUNT and KMP_BLOCKTIME only while it is
 * loaded, so the program is started again where they were missing. What a person has set
 * is left alone. */
void vn_spin_briefly(char **argv);

#endif
