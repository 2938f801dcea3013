package ui

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/ui/page"
)

const formBytes = 64 << 10

// actPath is the only path that accepts forms.
const actPath = "/act"

// confirm serves the page on which the user confirms an action.
func (h *handler) confirm(w http.ResponseWriter, r *http.Request) {
	ask, err := parseAction(r.URL.Query())
	if err != nil {
		h.showResult(w, ask, nil, err)
		return
	}
	offer, err := h.desk.offer(r.Context(), ask)
	if err != nil {
		h.showResult(w, ask, nil, err)
		return
	}
	body, err := h.site.Confirm(page.Confirmation{Action: ask, Offer: offer})
	h.write(w, http.StatusOK, body, err)
}

func (h *handler) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		h.showResult(w, kit.Action{}, nil, fmt.Errorf("%w: %w", errInvalidRequest, err))
		return
	}
	form := r.PostForm
	ask, err := parseAction(form)
	if err != nil {
		h.showResult(w, ask, nil, err)
		return
	}
	generation, err := strconv.ParseInt(form.Get("generation"), 10, 64)
	if err != nil {
		h.showResult(w, ask, nil, fmt.Errorf("%w: the generation is %q", errInvalidRequest, form.Get("generation")))
		return
	}
	seen := kit.Seen{UID: types.UID(form.Get("uid")), Generation: generation}
	given := answer{reason: form.Get("reason"), duration: form.Get("for"), choice: form.Get("choice")}
	said, err := h.desk.do(r.Context(), ask, seen, form.Get("form"), given)
	h.showResult(w, ask, said, err)
}

func (h *handler) showResult(w http.ResponseWriter, ask kit.Action, said []string, wrong error) {
	body, err := h.site.Confirm(page.Confirmation{Action: ask, Said: said, Err: wrong})
	h.write(w, outcome(wrong), body, err)
}

// write sends a page. If err is set, it sends the error page instead.
func (h *handler) write(w http.ResponseWriter, code int, body []byte, err error) {
	if err != nil {
		code, body = status(err), h.site.Error(err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a disconnected client reads no error
}

func outcome(err error) int {
	usage, refusal := &cli.ExitError{}, &kit.RefusedError{}
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, errInvalidRequest), errors.As(err, &usage):
		return http.StatusBadRequest
	case errors.Is(err, kit.ErrChanged), errors.As(err, &refusal), apierrors.IsConflict(err):
		return http.StatusConflict
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return http.StatusForbidden
	case apierrors.IsNotFound(err):
		return http.StatusNotFound
	default:
		return http.StatusBadGateway
	}
}

// errInvalidRequest means that the requested action does not exist or is incomplete.
var errInvalidRequest = errors.New("this action is not possible")

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

type answer struct {
	// reason is the reason that the user entered. It is recorded if the resource has a field for it.
	reason string
	// duration is for example 2h; "" means unlimited.
	duration string
	// choice is the index of the chosen option, not its text, because browsers change line ends.
	choice string
}
