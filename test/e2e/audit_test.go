package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// daemonUser is the chart's ServiceAccount. targetAgent is the user agent that scute sends to the target, whatever its
// user there.
const (
	daemonUser  = "system:serviceaccount:" + scuted.Namespace + ":scute"
	targetAgent = "scute/target"
)

// request is an entry of an API server's audit log (audit.k8s.io/v1 Event).
type request struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	// The impersonated user: the ServiceAccount of a WorkflowRun.
	ImpersonatedUser *struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// resource returns "resource.group", or "resource/subresource.group".
func (r request) resource() string {
	o := r.ObjectRef
	name := o.Resource
	if o.Subresource != "" {
		name += "/" + o.Subresource
	}
	if o.Group != "" {
		name += "." + o.Group
	}
	return name
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s/%s: %d", r.Verb, r.resource(), r.ObjectRef.Namespace, r.ObjectRef.Name, r.ResponseStatus.Code)
}

// changes reports whether the request changes anything except scute's own bookkeeping.
func (r request) changes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	bookkeeping := []string{
		"moves.scute.dev", "moves/status.scute.dev", "workflowruns.scute.dev", "workflowruns/status.scute.dev", "events.events.k8s.io", "leases.coordination.k8s.io",
		"selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io",
	}
	return !strings.Contains(r.RequestURI, "dryRun=All") && !slices.Contains(bookkeeping, r.resource())
}

func ofDaemon(r request) bool { return r.User.Username == daemonUser && r.ImpersonatedUser == nil }
func ofTasks(r request) bool  { return r.User.Username == daemonUser && r.ImpersonatedUser != nil }
func onTarget(r request) bool { return strings.HasPrefix(r.UserAgent, targetAgent) }

// trail is an API server's audit log from an offset on. The server writes an entry before it answers the request.
type trail struct {
	path string
	from int64
}

// auditTrail returns the trail from now on.
func auditTrail(t *testing.T, on *scuted.Installation) *trail {
	t.Helper()
	info, err := os.Stat(on.Side.AuditLog())
	harness.Must(t, err)
	return &trail{path: on.Side.AuditLog(), from: info.Size()}
}

// requests returns the requests that were answered since the trail began and that keep accepts.
func (tr *trail) requests(t *testing.T, keep func(request) bool) []request {
	t.Helper()
	content, err := os.ReadFile(tr.path)
	harness.Must(t, err)
	content = content[tr.from:]
	content = content[:bytes.LastIndexByte(content, '\n')+1]
	var found []request
	for line := range bytes.Lines(content) {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("reading %s: %v: %s", tr.path, err, line)
		}
		if keep(r) {
			found = append(found, r)
		}
	}
	return found
}

// unchanged checks that scute has changed nothing on the API server since the trail began.
func (tr *trail) unchanged(t *testing.T, who func(request) bool) {
	t.Helper()
	for _, r := range tr.requests(t, func(r request) bool { return who(r) && r.changes() }) {
		t.Errorf("scute sent a request that changes an object: %s", r)
	}
}
