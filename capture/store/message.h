/* message.h: what is sent to the process that writes a checkpoint file (scribe.h): numbers, texts and bytes in a row.
 *
 * Both ends are one program: what is taken is what was put, in that order. Errors are kept: a put without memory
 * makes the message bad, and a bad one is not sent; a take from a bad one gives 0, NULL or nothing. */
#ifndef VN_CAPTURE_MESSAGE_H
#define VN_CAPTURE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_message {
	char  *data;
	size_t n, room, at;
	bool   bad;
} vn_message;

void vn_message_finish(vn_message *m); /* safe on a zeroed one */

void vn_put_int(vn_message *m, int64_t x);
void vn_put_real(vn_message *m, double x);
void vn_put_text(vn_message *m, const char *text); /* NULL is another text than "" */
void vn_put_bytes(vn_message *m, const void *data, size_t bytes);
void vn_put_row(vn_message *m, const void *data, size_t bytes); /* a part of bytes whose number was put; a multiple of 8 */
void vn_put_texts(vn_message *m, char *const *text, int64_t n);

int64_t     vn_take_int(vn_message *m);
double      vn_take_real(vn_message *m);
const char *vn_take_text(vn_message *m);                 /* in the message */
const void *vn_take_bytes(vn_message *m, size_t *bytes); /* in the message, at a multiple of 8 */
/* Pointers into the message, to be freed; NULL: no memory. */
char      **vn_take_texts(vn_message *m, int64_t *n);

#endif
