/* status.h: what a function returns that may fail, and the line of text about it; see error.h. */
#pragma once

#include <stdbool.h>

#define VN_ERROR_MAX 1024

typedef enum vn_status {
	VN_OK = 0,
	VN_ERR_USAGE,       /* the user asked for something impossible */
	VN_ERR_IO,          /* the system refused: no such file, disk full */
	VN_ERR_FORMAT,      /* a file breaks the rules of its format */
	VN_ERR_NOTFOUND,    /* a tensor, weight or checkpoint is absent */
	VN_ERR_SHAPE,       /* a tensor has the wrong shape */
	VN_ERR_UNSUPPORTED, /* valid, but not supported */
	VN_ERR_NOMEM,
	VN_ERR_DEVICE,      /* Vulkan: none, unsuitable, or lost */
	VN_ERR_MISMATCH,    /* two recordings that are not comparable */
	VN_ERR_INTERRUPTED, /* SIGINT or SIGTERM */
	VN_ERR_DAMAGED      /* numbers contradict the digest in their file */
} vn_status;

/* Does this status end the whole job? Others may be a finding about one tensor. */
static inline bool vn_status_ends_job(vn_status st)
{
	return st == VN_ERR_IO || st == VN_ERR_NOMEM || st == VN_ERR_INTERRUPTED || st == VN_ERR_DAMAGED;
}

typedef struct vn_error {
	char text[VN_ERROR_MAX]; /* one line without newline; "": no error */
} vn_error;
