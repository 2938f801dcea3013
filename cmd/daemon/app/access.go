package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scute.dev/eventlog"
	"scute.dev/internal/logaccess"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/workflow"
)

// requireTokens makes the log's listener require the tokens in the Secrets. It does not wait until
// this process leads, because scutectl reads the log of this process even if another process leads.
func (d *daemon) requireTokens(where string, config *rest.Config, home *home) error {
	secrets, err := logaccess.Parse(where)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "log-access"))
	if err != nil {
		return fmt.Errorf("preparing the tokens of the event log: %w", err)
	}
	keeper := &logaccess.Keeper{Secrets: secrets, Client: clients.CoreV1().Secrets(secrets.Namespace), Set: home.access.Set, Logger: d.logger}
	return d.manager.Add(always(func(ctx context.Context) error {
		keeper.Run(ctx)
		return nil
	}))
}

// decisions lists the events that operators may append through the listener, by the kind of the
// aggregate or by the aggregate itself. None of them creates an aggregate, because only the
// controllers do.
var decisions = map[string][]string{
	string(eventlog.KindRun):   {"paused", "resumed", "aborted", "rollback-started", "ended", "task-paused", "task-released", "edge-expired", "decided", "defined", "migrated"},
	string(eventlog.KindMove):  {"resolved", "target-abandoned", "abort-requested", "log-lost", "abandoned"},
	trust.Aggregate().String(): {"reconciled"},
}

// checkAppend returns an error for events that clients of the listener may not append. It also
// refuses events that this daemon cannot decode, because the daemon could then not follow their
// aggregate any further.
func checkAppend(of eventlog.Aggregate, events []eventlog.Event) error {
	if len(events) == 0 {
		return errors.New("the commit has no events")
	}
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Type, "dev.scute."+string(of.Kind)+"."), ".v")
		switch {
		case !eventlog.Unverified(e.Actor):
			return fmt.Errorf("the actor of an event is %q: clients may append only as user/NAME; use the scutectl of this daemon's version", e.Actor)
		case !slices.Contains(decisions[string(of.Kind)], name) && !slices.Contains(decisions[of.String()], name):
			return fmt.Errorf("clients may not append %s: create a resource instead", e.Type)
		case !json.Valid(e.Data):
			return fmt.Errorf("the data of %s is not JSON", e.Type)
		}
		if err := decode(of, e); err != nil {
			return err
		}
	}
	return nil
}

var runEvents, moveEvents, logEvents = workflow.NewCatalog(), mover.NewCatalog(), trust.NewCatalog() //nolint:gochecknoglobals // read-only

func decode(of eventlog.Aggregate, e eventlog.Event) (err error) {
	switch {
	case of.Kind == eventlog.KindRun:
		_, err = runEvents.Decode(e)
	case of.Kind == eventlog.KindMove:
		_, err = moveEvents.Decode(e)
	default:
		_, err = logEvents.Decode(e)
	}
	return err
}
