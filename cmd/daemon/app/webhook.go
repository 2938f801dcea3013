package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"scute.dev/export/webhook"
)

type webhookOptions struct {
	// URL is the address of the receiver. If it is empty, no events are posted.
	URL string
	// Secret is the folder with the token and the certificate authority, or "".
	Secret string
	// Position is the ConfigMap (NAMESPACE/NAME) with the receiver's position in the log.
	Position string
}

func (o *webhookOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.URL, "webhook-url", o.URL, "URL that the events of the log are posted to, as CloudEvents; none if empty")
	f.StringVar(&o.Secret, "webhook-secret", o.Secret, "folder with the files token, which is sent as a bearer token, and ca.crt, which the receiver's certificate must chain to; each may be absent")
	f.StringVar(&o.Position, "webhook-position", o.Position, "ConfigMap to store the position up to which the receiver has accepted the events, NAMESPACE/NAME")
}

func (o *webhookOptions) validate() error {
	if o.URL == "" {
		if o.Secret != "" || o.Position != "" {
			return errors.New("--webhook-secret and --webhook-position need --webhook-url")
		}
		return nil
	}
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("--webhook-url must begin with https:// or http://, and name a host")
	case u.User != nil:
		return errors.New("--webhook-url must have no user and password: put a token into the folder of --webhook-secret")
	case !isNamespacedName(o.Position):
		return fmt.Errorf("--webhook-position is %q: it must be NAMESPACE/NAME", o.Position)
	}
	return nil
}

func (d *daemon) deliver(o webhookOptions, config *rest.Config, home *home) error {
	clients, err := newClients(config, "webhook")
	if err != nil {
		return fmt.Errorf("preparing the webhook: %w", err)
	}
	secret := webhook.Secret(o.Secret)
	client, err := secret.NewClient()
	if err != nil {
		return fmt.Errorf("preparing the webhook: --webhook-secret: %w", err)
	}
	namespace, name, _ := strings.Cut(o.Position, "/")
	logger := d.logger.With("webhook", host(o.URL))
	delivery := &webhook.Delivery{
		Log: home.log, Store: &positionConfigMap{clients.CoreV1().ConfigMaps(namespace), name}, Logger: logger,
		Sink: &webhook.Sink{URL: o.URL, Secret: secret, Client: client, OnRetry: func(err error, wait time.Duration) {
			logger.Debug("posting an event again", "error", err, "in", wait)
		}},
		Alarm: func(stopped bool, err error) { d.reportUndelivered(logger, stopped, err) },
	}
	reregister(deliveryMetrics(delivery)...)
	return d.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		logger.Info("posting the events of the log")
		delivery.Run(ctx)
		return nil
	}))
}

// host returns the host of a URL for messages. The path and the query may be secrets.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// reportUndelivered logs why events are not delivered. If the delivery has stopped, it also records
// a Kubernetes event.
func (d *daemon) reportUndelivered(logger *slog.Logger, stopped bool, err error) {
	if !stopped {
		logger.Warn("delivering events of the log failed; retrying", "error", err)
		return
	}
	logger.Error("delivery of events has stopped; change the token or the receiver, or skip the event, see docs/guides/consume-the-log.md", "error", err)
	d.report.event("WebhookStopped", err.Error())
}

func deliveryMetrics(d *webhook.Delivery) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scute_webhook_sequence", Help: "Sequence of the event log up to which the receiver of the webhook has accepted all events.",
		}, func() float64 { return float64(d.State().Sequence) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scute_webhook_stopped", Help: "1 if the receiver of the webhook refused an event, so that an operator must decide.",
		}, func() float64 {
			if d.State().Stopped {
				return 1
			}
			return 0
		}),
	}
}

// reregister registers collectors. In tests it replaces the collectors of an earlier daemon in the
// same process.
func reregister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		var again prometheus.AlreadyRegisteredError
		if err := metrics.Registry.Register(c); errors.As(err, &again) {
			metrics.Registry.Unregister(again.ExistingCollector)
			metrics.Registry.MustRegister(c)
		}
	}
}
