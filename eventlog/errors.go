package eventlog

import "errors"

// Errors of the log. Match them with errors.Is; the wrapping error describes what to do next.
var (
	// ErrConflict: another commit was appended to the aggregate first. Read it again and decide again.
	ErrConflict = errors.New("conflict: the aggregate has moved on")
	// ErrUnavailable: the log could not be reached within the deadline. Either the commit is not
	// stored, or that could not be checked. Appending the same commit again is always safe.
	ErrUnavailable = errors.New("event log unavailable")
	// ErrDenied: the server refuses the credentials.
	ErrDenied = errors.New("the event log refuses the credentials")
	// ErrPermission: the server denies its user a request.
	ErrPermission = errors.New("the NATS server denies this user a request")
	// ErrFull: the log refuses new events because it has reached its size limit. No event was deleted.
	ErrFull = errors.New("event log full")
	// ErrFrozen: the embedded log refuses every commit since a write to its disk failed. It is
	// opened again once the disk accepts writes.
	ErrFrozen = errors.New("event log is frozen")
	// ErrTooLarge: the commit does not fit into one message of the server. Split it into several commits.
	ErrTooLarge = errors.New("commit too large")
	// ErrLocked: another process has the log's folder open.
	ErrLocked = errors.New("event log folder is in use by another process")
	// ErrConfig: the stream exists with a configuration that could lose or alter events.
	ErrConfig = errors.New("event log stream is not configured as required")
	// ErrGap: a stored sequence is missing. This is an alarm and must never be skipped.
	ErrGap = errors.New("gap in the event log")
	// ErrMissing: the stream was deleted, or never existed.
	ErrMissing = errors.New("event log stream does not exist")
	// ErrExists: a log already exists, so none is restored.
	ErrExists = errors.New("an event log already exists")
	// ErrMoved: the embedded log was moved, and continues elsewhere.
	ErrMoved = errors.New("the event log was moved")
	// ErrUnknownType: this program does not know an event's type, its version, or one of its fields.
	ErrUnknownType = errors.New("unknown event type or field")
)
