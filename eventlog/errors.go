package eventlog

import "errors"

// Outcomes of an append that is not stored. Match with errors.Is; the wrapping error says what to do next.
var (
	// ErrConflict: someone else appended to the aggregate first. Re-read it and decide again.
	ErrConflict = errors.New("conflict: the aggregate has moved on")
	// ErrUnavailable: the log could not be reached within the deadline, and it is known that the commit is not
	// stored or the log could not be asked. Trying the same commit again is always safe.
	ErrUnavailable = errors.New("event log unavailable")
	// ErrDenied: the server of the log refuses the credentials.
	ErrDenied = errors.New("the event log refuses the credentials")
	// ErrPermission: the server of the log denies its user a request.
	ErrPermission = errors.New("the NATS server denies this user a request")
	// ErrFull: the log refuses new events because it has reached its size limit. Nothing was forgotten.
	ErrFull = errors.New("event log full")
	// ErrFrozen: the embedded log refuses every commit since a write to its disk failed. It is opened again once the disk
	// takes writes.
	ErrFrozen = errors.New("event log is frozen")
	// ErrTooLarge: the commit does not fit into one message of the server. Split it into several commits.
	ErrTooLarge = errors.New("commit too large")
	// ErrLocked: another process has the log's folder open.
	ErrLocked = errors.New("event log folder is in use by another process")
	// ErrConfig: the stream exists with a configuration that could lose or alter events.
	ErrConfig = errors.New("event log stream is not configured as required")
	// ErrGap: a sequence that was stored is missing. This is an alarm, never something to skip.
	ErrGap = errors.New("gap in the event log")
	// ErrMissing: the stream was deleted, or was never there.
	ErrMissing = errors.New("event log stream does not exist")
	// ErrExists: a log is restored only where there is none.
	ErrExists = errors.New("there is an event log already")
	// ErrMoved: the embedded log was moved to another place, and continues there.
	ErrMoved = errors.New("the event log was moved")
	// ErrUnknownType: an event's type or version, or a field of it, is not known to this program.
	ErrUnknownType = errors.New("unknown event type or field")
)
