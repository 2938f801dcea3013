package world

import "errors"

// ErrNotFound says that the log has nothing of that name, up to the moment that was asked for.
var ErrNotFound = errors.New("the log has no such thing")
