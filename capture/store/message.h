/* message.h: messages to the process that writes a checkpoint file (scribe.h): a sequence of
 * numbers, texts and bytes.
 *
 * Both ends are the same program, so values are taken in the order in which they were put. Errors
 * are kept: a put without memory makes the message bad. A bad message is not sent, and a take from
 * one gives 0, NULL or nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct vn_message {
	char  *data;
	size_t n, room, at;
	bool   bad;
} vn_message;

void vn_message_finish(vn_message *m); /* m may be zeroed */

void vn_message_put_int(vn_message *m, int64_t x);
void vn_message_put_text(vn_message *m, const char *text); /* NULL and "" are distinguished */
void vn_message_put_bytes(vn_message *m, const void *data, size_t bytes);
/* part of bytes whose total size was put; a multiple of 8 */
void vn_message_put_row(vn_message *m, const void *data, size_t bytes);
void vn_message_put_texts(vn_message *m, char *const *text, int64_t n);

int64_t     vn_take_int(vn_message *m);
const char *vn_take_text(vn_message *m);                 /* points into the message */
const void *vn_take_bytes(vn_message *m, size_t *bytes); /* points into the message, aligned to 8 */
/* Returns an array of pointers into the message, which the caller frees; NULL: no memory. */
char      **vn_take_texts(vn_message *m, int64_t *n);
