package act

import (
	"errors"
	"fmt"
	"net/url"
)

// ErrAsk says that something was asked for that there is not.
var ErrAsk = errors.New("this cannot be asked for")

// Ask is what somebody wants to do, with a thing that the log speaks of.
type Ask struct {
	// Do and Kind are a command: abort move.
	Do, Kind        string
	Namespace, Name string
	// ID of the thing in the log, as the page had it; "" for a thing that is not in the log.
	ID string
}

// Query are the parameters of an address that asks for it.
func (a Ask) Query() url.Values {
	return url.Values{"do": {a.Do}, "kind": {a.Kind}, "namespace": {a.Namespace}, "name": {a.Name}, "id": {a.ID}}
}

// Of reads it from parameters.
func Of(q url.Values) (Ask, error) {
	a := Ask{Do: q.Get("do"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), ID: q.Get("id")}
	switch _, known := actions()[a.Do+" "+a.Kind]; {
	case !known:
		return a, fmt.Errorf("%w: %q of a %q", ErrAsk, a.Do, a.Kind)
	case a.Namespace == "" || a.Name == "":
		return a, fmt.Errorf("%w: the namespace and the name are missing", ErrAsk)
	}
	return a, nil
}

// Answer is what somebody filled in.
type Answer struct {
	// Reason is recorded with what was done, where there is a place for it.
	Reason string
	// For is how long, as 2h; "" is without an end.
	For string
	// Choice is the place of one of those that were offered: a browser writes the ends of lines of a text in its own way.
	Choice string
}
