/* spin.h: limits how long idle OpenMP threads keep their processors busy. */
#pragma once

/* Call first in the main function of a program that runs a model. Waiting threads then release
 * their processors after some microseconds instead of ten milliseconds, for the writer of a capture
 * and other work. OpenMP reads GOMP_SPINCOUNT and KMP_BLOCKTIME only when it is loaded, so the
 * program restarts itself if they are not set. Values set by the user are kept. */
void vn_spin_briefly(char **argv);
