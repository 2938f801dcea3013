package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrNotFound: there is no file of this name.
var ErrNotFound = fs.ErrNotExist

// Store keeps files by names with slashes. Its methods may be called from many goroutines.
type Store interface {
	// Put writes a file, in place of an earlier one.
	Put(ctx context.Context, name string, from io.ReaderAt, size int64) error
	// Write writes a file of unknown size, in place of an earlier one, and returns the bytes. Where reading ends with an error, there is no
	// new file.
	Write(ctx context.Context, name string, from io.Reader) (int64, error)
	// Get reads a file; ErrNotFound where there is none. The caller closes it.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List calls fn with the names of the files in a folder and below it.
	List(ctx context.Context, folder string, fn func(name string) error) error
	// Delete removes a file. One that is not there is no error.
	Delete(ctx context.Context, name string) error
}

// Error says why a store did not do what it was asked for, and which field of a destination that is about.
type Error struct {
	// Reason is a word in CamelCase.
	Reason string
	// Field is relative to the destination: bucket, credentials, endpoint, volume; empty where it is none of them.
	Field string
	// Message has nothing of what the store said. Next is what to do about it.
	Message, Next string

	err error
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Unwrap gives the cause; its text may have what the store said.
func (e *Error) Unwrap() error { return e.err }

// The reasons whose remedy depends on where the user names the store.
const (
	ReasonPlainText  = "EndpointWithoutTLS"
	ReasonNotTrusted = "CertificateNotTrusted"
)

// The fields of destinations that errors name.
const (
	FieldBucket      = "bucket"
	FieldCredentials = "credentials"
	FieldEndpoint    = "endpoint"
	FieldVolume      = "volume"
)

// ErrForeign: what is at a place is not the backup that was meant.
var ErrForeign = errors.New("another backup, or something else, is there")

func wrap(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, name, err)
}
