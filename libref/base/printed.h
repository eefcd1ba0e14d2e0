/* printed.h: a stream that lets nothing unprintable through.
 *
 * Names, attributes and texts come from files of strangers, and a terminal obeys some characters: they could colour,
 * hide, turn round or forge lines. Whatever is written to such a stream reaches its descriptor as vn_utf8_printable
 * says, the rest as vn_utf8_code shows it; newlines and tabs are ours and pass. What is built from a stranger's text
 * is cleaned where it is built, too (vn_text_clean): there a newline is a stranger's, and columns know its width.
 */
#ifndef VN_LIBREF_BASE_PRINTED_H
#define VN_LIBREF_BASE_PRINTED_H

#include <stdbool.h>
#include <stdio.h>

/* Over an open descriptor, which fclose closes. colour: "\033[31m" and its like pass too. NULL without memory: the
 * descriptor stays open. */
FILE *vn_printed_open(int fd, bool colour);
/* stdout and stderr become such streams, and SIGPIPE is ignored. False without memory. */
bool  vn_printed_start(void);
/* Whoever read stdout has left (EPIPE). That is no failure of the stream: what else the program has to write, it writes, and
 * ends with vn_printed_leave, by SIGPIPE and without a word, as programs do that print for others. Where it was started with SIGPIPE
 * ignored it is a failure like any other. */
bool  vn_printed_left(void);
__attribute__((noreturn))
void  vn_printed_leave(void);
/* Why stdout could not be written ("it is closed", "No space left on device"); NULL: it could so far. */
const char *vn_printed_lost(void);
/* The error number of this thread's last failure to write to any such stream; EIO where there was none. */
int         vn_printed_errno(void);

#endif
