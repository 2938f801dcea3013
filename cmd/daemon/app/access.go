package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"scute.dev/eventlog"
	"scute.dev/internal/logaccess"
)

// admit has the listener of the log ask for the tokens in Secrets. It does not wait for leadership: scutectl reads the log of this
// process, whether it acts or not.
func (d *daemon) admit(where string, config *rest.Config, home *home) error {
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

// decisions are the types of events that operators append by the listener, by the kind of their aggregate. Everything else is begun by
// resources. A run may be pushed with all of its history: it is driven when a WorkflowRun adopts it.
var decisions = map[eventlog.Kind][]string{
	eventlog.KindMove:   {"resolved", "target-abandoned", "abort-requested", "log-lost", "abandoned"},
	eventlog.KindDaemon: {"reconciled", "epoch-close-requested"},
}

// accept refuses what nobody may append by the listener of the log: what only a daemon or a resource can have said, and the
// beginnings of anything but runs.
func accept(kind eventlog.Kind, events []eventlog.Event) error {
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Type, "dev.scute."+string(kind)+"."), ".v")
		switch {
		case !eventlog.Unverified(e.Actor):
			return fmt.Errorf("the actor of an event is %q: clients may append as user/NAME, and as no daemon or resource; use the scutectl of this daemon's version", e.Actor)
		case kind != eventlog.KindRun && !slices.Contains(decisions[kind], name):
			return fmt.Errorf("clients may not append %s: create a resource instead", e.Type)
		}
	}
	return nil
}
