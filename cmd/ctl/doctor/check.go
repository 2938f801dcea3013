package doctor

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube"
)

// Level is the severity of a result.
type Level int

// Levels.
const (
	OK Level = iota
	Warning
	Problem
)

// String returns the level as printed.
func (l Level) String() string { return [...]string{"ok", "warning", "problem"}[l] }

// MarshalText returns the level as encoded in JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Result is the result of one check.
type Result struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Message string `json:"message"`
	// Remedy is what to do about a warning or a problem.
	Remedy string `json:"remedy,omitempty"`
}

func ok(subject, format string, args ...any) Result {
	return Result{OK, subject, fmt.Sprintf(format, args...), ""}
}

func warning(subject, remedy, format string, args ...any) Result {
	return Result{Warning, subject, fmt.Sprintf(format, args...), remedy}
}

func problem(subject, remedy, format string, args ...any) Result {
	return Result{Problem, subject, fmt.Sprintf(format, args...), remedy}
}

// diagnosis is one run of the checks, with the results that later checks need.
type diagnosis struct {
	kit    *kit.Kit
	flags  *connect.Flags
	report func(Result)
	now    func() time.Time

	cluster       *connect.Cluster // nil without a cluster
	kube          *kube.Cluster
	types         []kube.Type
	account       client.ObjectKey // the daemon's ServiceAccount, or the chart's if the daemon runs outside the cluster; empty if there is none
	noDaemon      bool             // no daemon runs
	podsHidden    bool             // the user may not list the daemon's pods
	daemonOutside bool             // the daemon runs, but not in a pod that gives access to its log
	all           []v1alpha1.Move
	hasMoves      bool // all moves could be listed
	installed     bool // scute's kinds are served
	workflows     []v1alpha1.WorkflowRun
	pauses        []v1alpha1.Pause
	hasPauses     bool // Pauses could be listed in all namespaces
}

// list reads the objects of all namespaces, or only of the context's namespace if the user may not list all. everywhere reports whether it read all.
func (v *diagnosis) list(ctx context.Context, list client.ObjectList) (everywhere bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	err = v.cluster.Client.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return false, v.cluster.Client.List(ctx, list, client.InNamespace(v.cluster.Namespace))
	}
	return err == nil, err
}

// reportEach reports the results about the objects that need attention. check returns nil for an
// object that does not. If no object needs attention, it reports the result of fine.
func reportEach[T any](v *diagnosis, list []T, check func(*T) *Result, fine func() Result) {
	bad := false
	for i := range list {
		if r := check(&list[i]); r != nil {
			bad = true
			v.report(*r)
		}
	}
	if !bad {
		v.report(fine())
	}
}

// unheard returns a problem if no daemon has acted on an object for a minute since it was created.
func (v *diagnosis) unheard(subject string, o client.Object) *Result {
	created := o.GetCreationTimestamp().Time
	if v.now().Sub(created) <= startTimeout {
		return nil
	}
	return new(problem(subject, "check scuted above, and its log lines", "%s/%s was created %s and no daemon has acted on it", o.GetNamespace(), o.GetName(), cli.Ago(v.now(), created)))
}

// check runs one check and reports its results. goOn is false if the following checks would be meaningless.
type check func(ctx context.Context, v *diagnosis) (goOn bool)

// run runs all checks, in an order in which each check may rely on the previous ones.
func (v *diagnosis) run(ctx context.Context) {
	for _, c := range []check{apiServer, clusterAPI, providers, unfinishedRestores, checkServed, daemon, checkGrants, waitingRuns, waitingPauses, failingSchedules, listMoves} {
		if !c(ctx, v) {
			break
		}
	}
	if v.installed {
		readable(ctx, v)
		checkRemediations(ctx, v)
	}
	eventLog(ctx, v)
	if v.hasMoves {
		waitingMoves(v)
		leftoverPauses(ctx, v)
	}
}
