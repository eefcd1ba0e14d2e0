/* interrupt.h: SIGINT, SIGTERM and SIGHUP as a flag to look at between tensors.
 *
 * A second signal ends the process at once: what was published is safe.
 */
#ifndef VN_CAPTURE_INTERRUPT_H
#define VN_CAPTURE_INTERRUPT_H

#include <stdbool.h>

void vn_interrupt_catch(void);
bool vn_interrupted(void);

#endif
