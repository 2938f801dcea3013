package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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
