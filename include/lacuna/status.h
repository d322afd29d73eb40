/* Statuses: what functions return, and what the last failure was. */
#ifndef LACUNA_STATUS_H
#define LACUNA_STATUS_H

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors and versions --- */

typedef enum lacuna_status {
  LACUNA_OK = 0,
  LACUNA_ERR_INVALID_ARGUMENT = 1, /* the input breaks a rule that the message names */
  LACUNA_ERR_OVERFLOW = 2,         /* an offset or size is beyond 2^60 bytes */
  LACUNA_ERR_LIMIT = 3,            /* a limit; the message holds it */
  LACUNA_ERR_MALFORMED = 4,        /* a wire form is not one */
  LACUNA_ERR_OUT_OF_MEMORY = 5,
  LACUNA_ERR_OTHER = 6,
  LACUNA_ERR_UNSUPPORTED = 7, /* this NIC, path or placement cannot do it; the message says why */
  LACUNA_ERR_TRUNCATED = 8,   /* a message is longer than its receive */
  LACUNA_ERR_PEER_LOST = 9,   /* a peer died, left, or broke the rules */
  LACUNA_ERR_TIMEOUT = 10,
  LACUNA_ERR_PERMISSION = 11 /* the operating system or a peer refused: another user's process, a wrong secret */
} lacuna_status;

/* "0.2.0" */
const char* lacuna_version(void);

/* What the last failed call of this thread has to say; valid until its next failed call. */
const char* lacuna_error_message(void);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif
