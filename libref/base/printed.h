/* printed.h: an output stream that escapes everything unprintable.
 *
 * Names, attributes and texts come from untrusted files, and a terminal obeys some characters: they
 * could colour, hide, reverse or forge lines. Text written to such a stream reaches its descriptor
 * unchanged where vn_utf8_printable allows it, and otherwise as vn_utf8_code shows it; newlines and
 * tabs pass. Strings made from untrusted text are also cleaned where they are made (vn_text_clean),
 * so that untrusted newlines are escaped and column widths are right.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Opens such a stream over a descriptor, which fclose closes. colour: lets sequences like
 * "\033[31m" pass. Returns NULL without memory; the descriptor then stays open. */
FILE                          *vn_printed_open(int fd, bool colour);
/* Lets the colours of vn_say_colour pass on stdout, which only a terminal gets otherwise. */
void                           vn_printed_colours(void);
/* Turns stdout and stderr into such streams, and ignores SIGPIPE. Returns false without memory. */
bool                           vn_printed_start(void);
/* Shows what is printed from now on in a pager, if stdout is a terminal; vn_printed_end,
 * after the last flush, waits until the reader leaves it. Colours are chosen as without it. */
void                           vn_printed_page(void);
void                           vn_printed_end(void);
/* Has the reader of stdout gone (EPIPE)? That is not an error of the stream. The program still
 * writes its other output, and then calls vn_printed_leave, which ends it silently by SIGPIPE, as
 * usual for programs in a pipe. If the program was started with SIGPIPE ignored, EPIPE is an
 * ordinary error. */
bool                           vn_printed_left(void);
__attribute__((noreturn)) void vn_printed_leave(void);
/* Returns why stdout could not be written ("it is closed", "No space left on device"); NULL: no
 * failure so far. */
const char                    *vn_printed_lost(void);
/* Returns the errno of this thread's last failed write to such a stream; EIO if there was none. */
int                            vn_printed_errno(void);
