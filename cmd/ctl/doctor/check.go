package doctor

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube"
)

type level int

const (
	levelOK level = iota
	levelWarning
	levelProblem
)

// String returns the level as printed.
func (l level) String() string { return [...]string{"ok", "warning", "problem"}[l] }

// MarshalText returns the level as encoded in JSON.
func (l level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

type result struct {
	Level   level  `json:"level"`
	Subject string `json:"subject"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

func ok(subject, format string, args ...any) result {
	return result{levelOK, subject, fmt.Sprintf(format, args...), ""}
}

func warning(subject, remedy, format string, args ...any) result {
	return result{levelWarning, subject, fmt.Sprintf(format, args...), remedy}
}

func problem(subject, remedy, format string, args ...any) result {
	return result{levelProblem, subject, fmt.Sprintf(format, args...), remedy}
}

// diagnosis is one run of the checks. Later checks use results of earlier ones.
type diagnosis struct {
	kit    *kit.Kit
	flags  *connect.Flags
	report func(result)
	now    func() time.Time

	cluster       *connect.Cluster // nil without a cluster
	kube          *kube.Cluster
	types         []kube.Type
	account       client.ObjectKey // the daemon's ServiceAccount, or the chart's if the daemon runs outside the cluster; may be empty
	noDaemon      bool
	podsHidden    bool // the user may not list the daemon's pods
	daemonOutside bool // the daemon runs, but not in a pod that gives access to its log
	moves         v1alpha1.MoveList
	workflows     v1alpha1.WorkflowRunList
	pauses        v1alpha1.PauseList
	listed        map[string]bool // by kind: true if read in all namespaces, false if only in one
	served        bool            // the API server serves scute's kinds
}

// check runs one check and reports its results. goOn is false if the checks after it would be
// pointless.
type check func(ctx context.Context, v *diagnosis) (goOn bool)

// run runs all checks. Each check may use the results of earlier ones.
func (v *diagnosis) run(ctx context.Context) {
	for _, c := range []check{apiServer, clusterAPI, providers, unfinishedRestores, checkServed, daemon, checkGrants} {
		if !c(ctx, v) {
			break
		}
	}
	if v.served {
		checkObjects(ctx, v)
		checkRemediations(ctx, v)
	}
	eventLog(ctx, v)
	if _, listed := v.listed["Move"]; listed {
		leftoverPauses(ctx, v)
	}
}
