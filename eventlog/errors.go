package eventlog

import "errors"

// Errors of the log. Match them with errors.Is; the wrapping error describes what to do next.
var (
	// ErrConflict: another commit was appended to the aggregate first. Read it again and decide again.
	ErrConflict = errors.New("conflict: the aggregate has moved on")
	// ErrUnavailable: the log could not be reached within the deadline, so it is unknown whether
	// the commit is stored. Appending the same commit again is always safe.
	ErrUnavailable = errors.New("event log unavailable")
	ErrDenied      = errors.New("the event log refuses the credentials")
	ErrPermission  = errors.New("the NATS server denies this user a request")
	// ErrFull: the log has reached its size limit. No event was deleted.
	ErrFull = errors.New("event log full")
	// ErrFrozen: a write to the disk of the embedded log failed. The log refuses every commit until
	// it is opened again, when the disk accepts writes.
	ErrFrozen = errors.New("event log is frozen")
	// ErrTooLarge: the commit does not fit into one message of the server. Split it into several commits.
	ErrTooLarge = errors.New("commit too large")
	ErrLocked   = errors.New("event log folder is in use by another process")
	// ErrConfig: the stream exists with a configuration that could lose or alter events.
	ErrConfig = errors.New("event log stream is not configured as required")
	// ErrGap: a stored sequence is missing. This is an alarm and must never be skipped.
	ErrGap         = errors.New("gap in the event log")
	ErrMissing     = errors.New("event log stream does not exist")
	ErrExists      = errors.New("an event log already exists")
	ErrMoved       = errors.New("the event log was moved")
	ErrUnknownType = errors.New("unknown event type or field")
)
