package ui

import (
	"errors"
	"fmt"
	"net/url"

	"scute.dev/cmd/ctl/kit"
)

// errInvalidRequest reports a request for an action that does not exist, is incomplete or was not confirmed.
var errInvalidRequest = errors.New("this action is not possible")

// parseAction parses the requested action from the parameters of its address.
func parseAction(q url.Values) (kit.Action, error) {
	a := kit.Action{Do: q.Get("do"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name"), ID: q.Get("id")}
	switch _, known := actions()[a.Do+" "+a.Kind]; {
	case !known:
		return a, fmt.Errorf("%w: %q of a %q", errInvalidRequest, a.Do, a.Kind)
	case a.Namespace == "" || a.Name == "":
		return a, fmt.Errorf("%w: the namespace and the name are missing", errInvalidRequest)
	}
	return a, nil
}

// answer is the content of the submitted form.
type answer struct {
	// reason is recorded with the action if the resource has a field for it.
	reason string
	// duration is the duration, for example 2h; "" means unlimited.
	duration string
	// choice is the index of the chosen option. It is not the option's text because browsers change line ends.
	choice string
}
