package logcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/mover/runner"
	remediations "scute.dev/remediator/runner"
	wf "scute.dev/workflow"
	runs "scute.dev/workflow/runner"
)

type reconcileOptions struct {
	deps
	Yes bool
}

func newCmdReconcile(env *cli.Env) *cobra.Command {
	o := &reconcileOptions{}
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Let the daemon act on a log that went back or was replaced, after a review of what is open",
		Long: `Let the daemon act on a log that went back or was replaced, after a review of what is open.

A daemon does nothing if its log is not the one that last acted on the management cluster, or is shorter than it was. Restore
the newest log if you can. If you cannot, this command shows every move, run and remediation that is open in the log or
in the cluster, and what will happen to it. With --yes it records this in the log, and the daemon acts.`,
		Example: kit.Examples(env, "$ log reconcile", "$ log reconcile --yes"),
		Args:    cli.NoArgs,
	}
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "Record the decision, after which the daemon acts on the log")
	return o.command(env, cmd, func(ctx context.Context, _ []string) error { return o.run(ctx) }, "json")
}

type reconciliation struct {
	LogID string `json:"logID"`
	// Reason and Message are the reason why the daemon may not act on the log; empty if it may.
	Reason  trust.Reason `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	// Open contains the unfinished work, and what will happen to it.
	Open []trust.Outcome `json:"open"`
	// Recorded is true if the decision is in the log.
	Recorded bool `json:"recorded"`
}

func (o *reconcileOptions) run(ctx context.Context) error {
	cluster, err := o.Flags.Cluster()
	if err != nil {
		return err
	}
	if err := o.Flags.Check(); err != nil {
		return err
	}
	open := o.Flags.Log
	if o.Yes {
		open = o.Flags.LogToAppend
	}
	log, err := open(ctx, o.Env.Err)
	if err != nil {
		return err
	}
	defer log.Close()
	own, marks, err := identify(ctx, cluster, log)
	if err != nil {
		return err
	}
	openings := newUnfinishedWork()
	if own.Head, err = log.Replay(ctx, 0, openings.apply); err != nil {
		return err
	}
	state, seq := openings.trust.State()
	fault := trust.Check(&state, own, marks)
	if fault == nil {
		if o.Format.Data() {
			return o.Format.Print(o.Env.Out, reconciliation{LogID: own.LogID, Open: []trust.Outcome{}})
		}
		return o.Env.Linef("Nothing needs to be reconciled: the daemon may act on event log %s.", own.LogID)
	}
	outcomes, err := openings.outcomes(ctx, cluster)
	if err != nil {
		return err
	}
	if !o.Format.Data() {
		if err := o.show(fault, outcomes); err != nil {
			return err
		}
	}
	if o.Yes {
		if err := o.record(ctx, cluster, log, openings, trust.Reconciled{Cluster: own.Cluster, Watermark: marks.Lease, Statuses: marks.Statuses, Open: outcomes}, seq); err != nil {
			return err
		}
	}
	switch {
	case o.Format.Data():
		return o.Format.Print(o.Env.Out, reconciliation{LogID: own.LogID, Reason: fault.Reason, Message: fault.Message, Open: append([]trust.Outcome{}, outcomes...), Recorded: o.Yes})
	case o.Yes:
		return o.Env.Linef("Recorded: the daemon may act on event log %s.", own.LogID)
	}
	o.Env.Notef("Nothing was recorded. %s records this, and the daemon acts on the log.", o.Hint("", "log", "reconcile", "--yes"))
	return nil
}

// record appends to the log the outcome of all unfinished work, and the permission for the daemon
// to act on the log.
func (o *reconcileOptions) record(ctx context.Context, cluster *connect.Cluster, log *connect.Log, openings *unfinishedWork, decision trust.Reconciled, seq uint64) error {
	actor := connect.Actor(ctx, cluster)
	err := openings.reconcile(ctx, &runner.Runner{Log: log.Log, Now: o.Env.Now}, &runs.Runner{Log: log.Log, Now: o.Env.Now}, actor)
	if err != nil {
		return err
	}
	c, err := trust.Commit(decision, actor, seq, o.Env.Now())
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, c)
	return err
}

// CheckTrust returns why the daemon may not act on its log, or nil.
func CheckTrust(ctx context.Context, cluster *connect.Cluster, log *connect.Log) (*trust.Fault, error) {
	own, marks, err := identify(ctx, cluster, log)
	if err != nil {
		return nil, err
	}
	records, err := log.Read(ctx, trust.Aggregate(), 0)
	if err != nil {
		return nil, err
	}
	view := trust.NewView()
	for _, r := range records {
		if err := view.Apply(r); err != nil {
			return nil, err
		}
	}
	if own.Head, err = log.Head(ctx); err != nil { // read after the marks, because an active daemon raises the head
		return nil, err
	}
	state, _ := view.State()
	return trust.Check(&state, own, marks), nil
}

// identify returns the identity of the log, without its head, and the high-water marks to compare
// it with.
func identify(ctx context.Context, cluster *connect.Cluster, log *connect.Log) (own trust.Identity, marks trust.Watermarks, err error) {
	var ns corev1.Namespace
	if err := cluster.Client.Get(ctx, client.ObjectKey{Name: "kube-system"}, &ns); err != nil {
		return own, marks, fmt.Errorf("reading namespace kube-system: %w", cluster.Explain(err))
	}
	marks, err = marksOf(ctx, cluster, log.ID())
	return trust.Identity{LogID: log.ID(), Cluster: string(ns.UID)}, marks, err
}

func marksOf(ctx context.Context, cluster *connect.Cluster, logID string) (marks trust.Watermarks, err error) {
	var lease coordinationv1.Lease
	err = client.IgnoreNotFound(cluster.Client.Get(ctx, client.ObjectKey{Namespace: trust.LeaseNamespace, Name: trust.LeaseName}, &lease))
	if err != nil {
		return marks, fmt.Errorf("reading the high-water mark in Lease %s/%s: %w", trust.LeaseNamespace, trust.LeaseName, cluster.Explain(err))
	}
	marks.Lease, marks.Reconciled = trust.WatermarkOf(lease.Annotations), lease.Annotations[trust.ReconciledAnnotation]
	marks.Statuses, err = trust.HighestMark(ctx, cluster.Client, logID, trust.Moves, trust.WorkflowRuns, trust.Pauses, trust.Remediations, trust.Schedules)
	if err != nil {
		return marks, cluster.Explain(err)
	}
	return marks, nil
}

func (o *reconcileOptions) show(f *trust.Fault, outcomes []trust.Outcome) error {
	v := o.View()
	lines := []string{string(f.Reason) + ": " + f.Message, ""}
	if len(outcomes) == 0 {
		lines = append(lines, "Nothing is open, neither in the log nor in the cluster.")
	} else {
		table := cli.Table{Header: []string{"OPEN", "IN THE LOG", "IN THE CLUSTER", "THEN"}}
		for _, out := range outcomes {
			table.Add(out.Name, cmp.Or(out.Log, "-"), cmp.Or(out.Resource, "-"), out.Next)
		}
		lines = append(lines, table.Lines(v.Paint, v.Width)...)
	}
	return o.Print(lines)
}

type unfinishedWork struct {
	trust        *trust.View
	moves        *runner.Moves
	runs         *runs.Runs
	remediations *remediations.Remediations
	moveStates   map[string]runner.ResourceState
	// requestedRuns are the IDs of runs that have or had a WorkflowRun. endedRuns are the IDs of runs
	// whose WorkflowRun has ended or rolls back.
	requestedRuns, endedRuns map[string]bool
}

func newUnfinishedWork() *unfinishedWork {
	return &unfinishedWork{
		trust: trust.NewView(), moves: runner.NewMoves(), runs: runs.NewRuns(), remediations: remediations.NewRemediations(),
		moveStates: make(map[string]runner.ResourceState), requestedRuns: make(map[string]bool), endedRuns: make(map[string]bool),
	}
}

// apply applies a commit. It ignores a commit that cannot be read, because the views report it.
func (s *unfinishedWork) apply(r eventlog.Record) error {
	if _, known := s.requestedRuns[r.Aggregate.ID]; r.Aggregate.Kind == eventlog.KindRun && !known {
		first, err := r.Events()
		s.requestedRuns[r.Aggregate.ID] = err == nil && len(first) > 0 && strings.HasPrefix(first[0].Actor, "resource/")
	}
	_ = errors.Join(s.moves.Apply(r), s.runs.Apply(r), s.remediations.Apply(r))
	return s.trust.Apply(r)
}

const (
	thenMove    = "continues: before each step that cannot be undone, both clusters are checked; if they disagree with the log, the move is stranded"
	thenLost    = "is stranded until you resolve it: both clusters are checked for its progress; if neither has a trace of it, it starts again"
	thenEnds    = "ends: its resource reports that it has ended, or was deleted"
	thenRun     = "continues: each task checks the current state before it acts; a task that may run only once waits for a decision"
	thenStops   = "is aborted: its resource reports that it has ended or was rolled back, or was deleted; what it holds is released, and it can be resumed"
	thenOwner   = "is observed again, and continues from the state of its machines"
	thenUnknown = "is stranded and not started again: check by hand what it changed before you delete or recreate it"
)

// outcomes returns the unfinished work in the log, followed by the unfinished work that exists only
// in the cluster.
func (s *unfinishedWork) outcomes(ctx context.Context, cluster *connect.Cluster) ([]trust.Outcome, error) {
	var moves v1alpha1.MoveList
	var workflows v1alpha1.WorkflowRunList
	if err := errors.Join(cluster.Client.List(ctx, &moves), cluster.Client.List(ctx, &workflows)); err != nil {
		return nil, fmt.Errorf("listing what is open in the cluster: %w", cluster.Explain(err))
	}
	world := make(map[string]string)
	var alone []trust.Outcome
	note := func(name string, known, over bool, phase, then string) {
		world[name] = phase
		if !known && !over && phase != "" {
			alone = append(alone, trust.Outcome{Name: name, Resource: phase, Next: then})
		}
	}
	for i := range moves.Items {
		m := &moves.Items[i].Status
		_, known := s.moves.Status(m.MoveID)
		note("move/"+m.MoveID, known, m.FinishedAt != nil, string(m.Phase), thenLost)
		s.moveStates[v1alpha1.LogID(&moves.Items[i])] = runner.ResourceState{Phase: m.Phase, Ended: m.FinishedAt != nil}
	}
	for i := range workflows.Items {
		w := &workflows.Items[i].Status
		_, known := s.runs.Summary(w.RunID)
		note("run/"+w.RunID, known, w.FinishedAt != nil, string(w.Phase), thenUnknown)
		id, _, _ := workflows.Items[i].LogID()
		s.endedRuns[id] = w.FinishedAt != nil || slices.Contains([]v1alpha1.RunPhase{v1alpha1.RunAborted, v1alpha1.RunRollingBack, v1alpha1.RunRollbackFailed}, w.Phase)
	}
	for _, id := range s.openMoves() {
		if _, there := s.moveStates[id]; !there {
			s.moveStates[id] = runner.ResourceState{Ended: true}
		}
	}
	return append(s.inLog(world), alone...), nil
}

func (s *unfinishedWork) openMoves() []string {
	return slices.DeleteFunc(s.moves.IDs(), func(id string) bool {
		status, ok := s.moves.Status(id)
		return !ok || status.FinishedAt != nil
	})
}

func (s *unfinishedWork) openRuns() []string {
	return slices.DeleteFunc(s.runs.IDs(), func(id string) bool {
		g, ok := s.runs.Summary(id)
		return !ok || g.Settled
	})
}

// mustStop reports whether an open run must not continue. The log may have lost the decision that
// ended the run or rolled it back.
func (s *unfinishedWork) mustStop(id string) bool {
	if g, _ := s.runs.Summary(id); g.Stopping {
		return false
	}
	turned, there := s.endedRuns[id]
	return turned || !there && s.requestedRuns[id]
}

// reconcile records the outcome of open moves and runs. It can be repeated.
func (s *unfinishedWork) reconcile(ctx context.Context, r *runner.Runner, ofRuns *runs.Runner, actor string) error {
	for _, id := range s.openRuns() {
		if !s.mustStop(id) {
			continue
		}
		err := ofRuns.Command(ctx, id, actor, wf.AbortRun{Reason: "the log was reconciled, and the resource of the run reports that it has ended or was rolled back, or was deleted"})
		if err != nil && !errors.Is(err, eventlog.ErrUnknownType) { // no daemon of this version drives a run with unknown events
			return fmt.Errorf("recording the outcome of run %s: %w", id, err)
		}
	}
	for _, id := range s.openMoves() {
		if s.moves.Continuation(id, s.moveStates[id]) == runner.Continues {
			continue
		}
		if err := r.Reconcile(ctx, id, actor, s.moveStates[id]); err != nil {
			return fmt.Errorf("recording the outcome of move %s: %w", id, err)
		}
	}
	return nil
}

func (s *unfinishedWork) inLog(world map[string]string) []trust.Outcome {
	var out []trust.Outcome
	then := map[runner.Continuation]string{runner.Continues: thenMove, runner.BecomesLost: thenLost, runner.Ends: thenEnds}
	for _, id := range s.openMoves() {
		status, _ := s.moves.Status(id)
		out = append(out, trust.Outcome{
			Name: "move/" + id, Log: string(status.Phase), Resource: world["move/"+id], Next: then[s.moves.Continuation(id, s.moveStates[id])],
		})
	}
	for _, id := range s.openRuns() {
		g, _ := s.runs.Summary(id)
		next := thenRun
		if s.mustStop(id) {
			next = thenStops
		}
		out = append(out, trust.Outcome{Name: "run/" + id, Log: string(g.Phase), Resource: world["run/"+id], Next: next})
	}
	for _, owner := range s.remediations.Pending() {
		out = append(out, trust.Outcome{Name: string(eventlog.KindRemediation) + "/" + owner.ID(), Log: "in progress", Next: thenOwner})
	}
	return out
}
