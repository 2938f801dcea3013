package move

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/kube"
	"scute.dev/mover"
	"scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// localBase returns the ID of a task's first move: NAMESPACE/RUN-TASK/HASH of the key.
func (m *Kind) localBase(c *task.Call) string {
	return fmt.Sprintf("%s/%s-%s/%s", c.Namespace, c.Name, c.Task, task.Hash(c.Key())[:8])
}

// readState reads the state of a move. It returns the zero State if the move does not exist.
func (m *Kind) readState(ctx context.Context, id string) (mover.State, error) {
	move := aggregate.Root[mover.Event, *mover.State]{
		Log: m.Log, Catalog: mover.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindMove, ID: id}, State: new(mover.State),
	}
	err := move.Read(ctx)
	if unreadable := (*aggregate.UnreadableError)(nil); errors.As(err, &unreadable) {
		err = task.Final(fmt.Errorf("move %s: %w: run the version of scute that wrote this, or a newer one", id, err))
	}
	return *move.State, err
}

// current returns the first of the task's moves that is unfinished, has succeeded, or does not
// exist yet.
func (m *Kind) current(ctx context.Context, record moveRecord) (id string, s mover.State, err error) {
	for n := 1; ; n++ {
		id = record.nth(n)
		if s, err = m.readState(ctx, id); err != nil {
			return id, s, err
		}
		if !s.Finished() || s.Phase == mover.PhaseSucceeded {
			return id, s, nil
		}
	}
}

func (m *Kind) runLocal(ctx context.Context, c *task.Call, record moveRecord, w With) (json.RawMessage, error) {
	id, s, err := m.current(ctx, record)
	if err != nil {
		return nil, err
	}
	if !s.Finished() {
		drive, err := m.newRunner(ctx, c, record)
		if err != nil {
			return nil, err
		}
		if err := drive.Request(ctx, id, "run/"+c.Run, moveSpec(c, w)); err != nil {
			return nil, err
		}
		if err := drive.Drive(ctx, id); err != nil {
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				return nil, fmt.Errorf("the move was interrupted; the next attempt continues it: %w", err)
			}
			return nil, err
		}
		if s, err = m.readState(ctx, id); err != nil {
			return nil, err
		}
	}
	message, next := mover.Explain(&s)
	if s.Phase != mover.PhaseSucceeded {
		return nil, fmt.Errorf("%s", joinMessage(message, next))
	}
	return json.Marshal(output{Move: id, Clusters: s.Counts.Clusters, Objects: s.Counts.Objects, Message: message})
}

func (m *Kind) undoLocal(ctx context.Context, c *task.Call, record moveRecord) error {
	id, s, err := m.current(ctx, record)
	switch {
	case err != nil:
		return err
	case s.Phase == mover.PhaseSucceeded:
		return task.Final(ErrMoved)
	case s.Phase == "":
		return nil // there is no move, or all moves were rolled back
	}
	drive, err := m.newRunner(ctx, c, record)
	if err != nil {
		return err
	}
	if err := drive.Abort(ctx, id, "run/"+c.Run, "the task is being undone"); err != nil {
		return err
	}
	if err := drive.Drive(ctx, id); err != nil {
		return err
	}
	if s, err = m.readState(ctx, id); err != nil {
		return err
	}
	message, next := mover.Explain(&s)
	switch {
	case s.Phase == mover.PhaseSucceeded:
		return task.Final(ErrMoved)
	case s.Finished():
		return nil
	default:
		return fmt.Errorf("%s", joinMessage(message, next))
	}
}

// newRunner returns a runner for the task's moves. It opens both management clusters again, because
// the process may have been restarted.
func (m *Kind) newRunner(ctx context.Context, c *task.Call, record moveRecord) (*runner.Runner, error) {
	if m.Log == nil {
		return nil, task.Final(errors.New("a move needs an event log, and there is none"))
	}
	source, err := m.openSide(ctx, c, "source", record.From)
	if err != nil {
		return nil, fmt.Errorf("with.from: %w", err)
	}
	return &runner.Runner{
		Log: m.Log, Incarnation: m.Incarnation, Logger: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)),
		Performer: func(id string) runner.Performer {
			return &progressPerformer{c: c, Performer: &transfer.Transfer{ID: id, Source: source, Dial: func(ctx context.Context, _ mover.Spec) (*kube.Cluster, error) {
				target, err := m.openSide(ctx, c, "target", record.To)
				if err != nil {
					return nil, fmt.Errorf("with.to: %w", err)
				}
				return target, nil
			}}}
		},
	}, nil
}

// openSide opens a management cluster. name is the name of the cluster in messages of the move.
func (m *Kind) openSide(ctx context.Context, c *task.Call, name string, ref access.ClusterRef) (*kube.Cluster, error) {
	cluster, err := m.Clusters.Open(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return kube.Connect(name, cluster.Config)
}

// progressPerformer reports the state of the move before it performs a step.
type progressPerformer struct {
	runner.Performer
	c *task.Call
}

func (t *progressPerformer) Perform(ctx context.Context, s *mover.State, step mover.Step, emit transfer.Emit) (mover.Outcome, error) {
	message, _ := mover.Explain(s)
	t.c.Progress(message)
	return t.Performer.Perform(ctx, s, step, emit)
}

// moveSpec returns the specification of a task's move. It omits the path of a kubeconfig file,
// because the path is only valid on this machine.
func moveSpec(c *task.Call, w With) mover.Spec {
	s := mover.Spec{
		Namespace: cmp.Or(w.Namespace, c.Namespace), Name: c.Name + "-" + c.Task, Clusters: w.Clusters, All: w.All, CarryStatus: w.CarryStatus, AcceptLoss: w.AcceptLoss,
		Acknowledge: cmp.Or(w.Timeouts.Acknowledge, acknowledgeTimeout), Create: cmp.Or(w.Timeouts.Create, createTimeout), Resume: cmp.Or(w.Timeouts.Resume, resumeTimeout),
	}
	if ref := w.To.KubeconfigSecretRef; ref != nil {
		s.Target = mover.Target{SecretName: ref.Name, SecretKey: cmp.Or(ref.Key, secretKey), AllowInsecure: w.To.AllowInsecure}
	}
	return s
}

func joinMessage(message, next string) string {
	if next == "" {
		return message
	}
	return message + ": " + next
}
