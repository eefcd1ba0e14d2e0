/* interrupt.h: turns SIGINT, SIGTERM and SIGHUP into a flag, which is checked between tensors.
 *
 * A second signal ends the process at once, without its temporary files; what was published in the
 * file is safe.
 */
#pragma once

#include <stdbool.h>

void vn_interrupt_catch(void);
bool vn_interrupted(void);
int  vn_interrupted_by(void); /* the signal; 0: none */
