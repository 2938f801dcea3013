package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// ErrNotFound is returned if there is no file with the name.
var ErrNotFound = fs.ErrNotExist

// Store stores files under names with slashes. Its methods are safe for concurrent use.
type Store interface {
	// Put writes a file, replacing an existing one.
	Put(ctx context.Context, name string, from io.ReaderAt, size int64) error
	// Write writes a file of unknown size, replacing an existing one, and returns the number of
	// bytes. If reading fails, it writes no file.
	Write(ctx context.Context, name string, from io.Reader) (int64, error)
	// Get opens a file, or returns ErrNotFound. The caller closes it.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List calls fn with the name of each file below a folder.
	List(ctx context.Context, folder string, fn func(name string) error) error
	// Delete deletes a file. It succeeds if the file does not exist.
	Delete(ctx context.Context, name string) error
}

// Error is why a request to a store failed, and which field of the destination is at fault.
type Error struct {
	// Reason is in CamelCase.
	Reason string
	// Field is bucket, credentials, endpoint or volume; empty if no field is at fault.
	Field string
	// Message has no text of the store. Next is what to do.
	Message, Next string

	err error
}

func newError(reason, field, message, next string, err error) *Error {
	return &Error{Reason: reason, Field: field, Message: message, Next: next, err: err}
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Unwrap returns the cause, whose text may include the store's.
func (e *Error) Unwrap() error { return e.err }

// Reasons whose remedy depends on where the user specifies the store.
const (
	ReasonPlainText  = "EndpointWithoutTLS"
	ReasonNotTrusted = "CertificateNotTrusted"
)

// Values of Error.Field.
const (
	FieldBucket      = "bucket"
	FieldCredentials = "credentials"
	FieldEndpoint    = "endpoint"
	FieldVolume      = "volume"
)

// ErrForeign is returned if a path has another backup or other content.
var ErrForeign = errors.New("another backup or other files are there")
