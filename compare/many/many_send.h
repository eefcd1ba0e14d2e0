/* many_send.h: hands a candidate from the process that compared it to the one that reports.
 *
 * The file holds values of this program as they are in memory, pointers to its constants included:
 * both processes are forks of each other, and nobody else can write the file.
 */
#ifndef VN_COMPARE_MANY_SEND_H
#define VN_COMPARE_MANY_SEND_H

#include "compare/many/many.h"

/* Writes the only candidate of m. Returns false if it cannot be written. */
bool      vn_many_send(vn_many *m, FILE *out);
/* Reads what vn_many_send wrote, as the next candidate, from the beginning of the file. VN_ERR_IO:
 * it cannot be read. */
vn_status vn_many_receive(vn_many *m, const char *path, FILE *in, vn_error *err);

#endif
