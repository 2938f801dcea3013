package act

import (
	"errors"
	"fmt"
	"net/url"
)

// ErrInvalidRequest reports a request for an action that does not exist, is incomplete or was not confirmed.
var ErrInvalidRequest = errors.New("this action is not possible")

// Request is a requested action on a resource.
type Request struct {
	// Do and Kind name the action, for example abort move.
	Do, Kind        string
	Namespace, Name string
	// ID is the resource's ID in the log when the page was rendered, "" if the log does not contain the resource.
	ID string
}

// Query returns the parameters of an address that requests the action.
func (a Request) Query() url.Values {
	return url.Values{"do": {a.Do}, "kind": {a.Kind}, "namespace": {a.Namespace}, "name": {a.Name}, "id": {a.ID}}
}

// ParseRequest parses a Request from parameters.
func ParseRequest(q url.Values) (Request, error) {
	a := Request{Do: q.Get("do"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), ID: q.Get("id")}
	switch _, known := actions()[a.Do+" "+a.Kind]; {
	case !known:
		return a, fmt.Errorf("%w: %q of a %q", ErrInvalidRequest, a.Do, a.Kind)
	case a.Namespace == "" || a.Name == "":
		return a, fmt.Errorf("%w: the namespace and the name are missing", ErrInvalidRequest)
	}
	return a, nil
}

// Answer is the content of the submitted form.
type Answer struct {
	// Reason is recorded with the action if the resource has a field for it.
	Reason string
	// Duration is the duration, for example 2h; "" means unlimited.
	Duration string
	// Choice is the index of the chosen option. It is not the option's text because browsers change line ends.
	Choice string
}
