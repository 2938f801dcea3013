package ui

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/move"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/run"
)

type action struct {
	effect string
	// reason and timed mean that the user can enter a reason and a duration. needed means that a
	// reason is required.
	reason, needed, timed bool
	// command is the equivalent scutectl command, without the name of the object; "" if there is none.
	command string
	object  func() client.Object
	perform performFunc
}

func actions() map[string]action {
	return map[string]action{
		"pause run": {
			effect: "No further task starts. Running tasks end, and the clocks of the run stop.", reason: true, command: "pause run", object: newRun,
			perform: withReason(run.Pause),
		},
		"resume run": {
			effect: "The run continues: finished tasks are skipped, aborted and interrupted tasks are tried again. A task that waits for a decision keeps waiting.",
			reason: true, command: "resume run", object: newRun,
			perform: withReason(run.Resume),
		},
		"abort move": {
			effect: "The move is rolled back: the copies on the target are deleted and the source is restored. If the move is Verified by then, it can only complete, and the abort is refused.",
			reason: true, command: "abort move", object: func() client.Object { return &v1alpha1.Move{} },
			perform: withReason(move.Abort),
		},
		"delete pause": {
			effect:  "The earlier pause state of each of its clusters is restored: a cluster that was paused before, or that another Pause keeps paused, stays paused. The Pause is gone when every object reconciles again, or the timeout has passed.",
			command: "resume cluster", object: func() client.Object { return &v1alpha1.Pause{} },
			perform: withoutReason(pause.Delete),
		},
		"hold remediation": {
			effect: "The machine stays marked, and no remediation of it is started until the hold ends or is released. A remediation in progress continues.",
			reason: true, timed: true, command: "hold remediation", object: newRemediation, perform: hold,
		},
		"release remediation": {
			effect: "The hold or abort is released: scute decides about the machine again, and may replace it.", command: "release remediation", object: newRemediation,
			perform: withoutReason(remediation.Release),
		},
		"abort remediation": {
			effect:  "The remediation of the machine is cancelled: the replicas of its owner are restored, and the replacement is deleted. The machine stays, marked, and no other remediation of it is started.",
			command: "abort remediation", object: newRemediation,
			perform: withoutReason(remediation.Abort),
		},
		"pause policy": {
			effect: "The RepairPolicy starts no remediation of any machine until this pause request is removed. Remediations in progress continue.",
			reason: true, needed: true, object: newPolicy,
			perform: withReason(remediation.PausePolicy),
		},
		"resume policy": {
			effect: "The pause request is removed from the RepairPolicy. If it has no other pause request, it may replace machines again.", object: newPolicy,
			perform: func(ctx context.Context, k *kit.Kit, s *kit.Seen, name string, a answer) error {
				place, err := strconv.Atoi(a.choice)
				if err != nil {
					return cli.Usagef("the choice is %q: choose one of the pause requests", a.choice)
				}
				return remediation.ResumePolicy(ctx, k, s, name, place)
			},
		},
	}
}

type performFunc = func(context.Context, *kit.Kit, *kit.Seen, string, answer) error

func withReason(fn func(_ context.Context, _ *kit.Kit, _ *kit.Seen, name, reason string) error) performFunc {
	return func(ctx context.Context, k *kit.Kit, s *kit.Seen, name string, a answer) error {
		return fn(ctx, k, s, name, a.reason)
	}
}

func withoutReason(fn func(context.Context, *kit.Kit, *kit.Seen, string) error) performFunc {
	return func(ctx context.Context, k *kit.Kit, s *kit.Seen, name string, _ answer) error {
		return fn(ctx, k, s, name)
	}
}

func newRun() client.Object         { return &v1alpha1.WorkflowRun{} }
func newRemediation() client.Object { return &v1alpha1.SurgeRemediation{} }
func newPolicy() client.Object      { return &v1alpha1.RepairPolicy{} }

func hold(ctx context.Context, k *kit.Kit, s *kit.Seen, name string, a answer) error {
	var length time.Duration
	if a.duration != "" {
		var err error
		if length, err = time.ParseDuration(a.duration); err != nil || length <= 0 {
			return cli.Usagef("the duration is %q: it must be greater than zero, for example 2h or 30m, or empty", a.duration)
		}
	}
	return remediation.Hold(ctx, k, s, name, a.reason, length)
}

func stateOf(o client.Object) (state, message, id string) {
	switch o := o.(type) {
	case *v1alpha1.WorkflowRun:
		return string(o.Status.Phase), o.Status.Message, o.Status.RunID
	case *v1alpha1.Move:
		return string(o.Status.Phase), o.Status.Message, o.Status.MoveID
	case *v1alpha1.Pause:
		return string(o.Status.Phase), o.Status.Message, o.Status.PauseID
	case *v1alpha1.SurgeRemediation:
		return string(o.Status.Phase), o.Status.Message, o.Status.RemediationID
	case *v1alpha1.RepairPolicy:
		return fmt.Sprintf("%d pause requests", len(o.Spec.PauseRequests)), o.Status.Message, ""
	default:
		return "", "", ""
	}
}
