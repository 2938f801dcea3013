package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"scute.dev/export/otlp"
)

const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

const closeTimeout = 5 * time.Second

// tracingOptions enable the export of the log as spans. OTEL_* variables configure the collector.
type tracingOptions struct {
	// Position is the ConfigMap (NAMESPACE/NAME) that stores up to which commit spans were sent. If it
	// is empty, no spans are sent.
	Position string
}

func (o *tracingOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Position, "tracing-position", o.Position, "send the OpenTelemetry spans of the log by OTLP over gRPC to "+endpointVariable+", and store the last sent position in this ConfigMap, NAMESPACE/NAME; none if empty")
}

func (o *tracingOptions) validate(getenv func(string) string) error {
	if o.Position == "" {
		return nil
	}
	if !isNamespacedName(o.Position) {
		return fmt.Errorf("--tracing-position is %q: it must be NAMESPACE/NAME", o.Position)
	}
	variable := tracesEndpointVariable
	if getenv(variable) == "" {
		variable = endpointVariable
	}
	u, err := url.Parse(getenv(variable))
	switch {
	case getenv(variable) == "":
		return fmt.Errorf("--tracing-position needs %s: the URL of a collector, for example https://collector.observability:4317", endpointVariable)
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%s must begin with https:// or http://, and name a host", variable)
	case u.User != nil:
		return errors.New(variable + " must have no user and password: put them into OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

func (d *daemon) trace(ctx context.Context, o tracingOptions, config *rest.Config, home *home, cluster string) error {
	clients, err := newClients(config, "tracing")
	if err != nil {
		return fmt.Errorf("preparing the traces: %w", err)
	}
	logger := d.logger.With("component", "tracing")
	otel.SetLogger(logr.FromSlogHandler(logger.Handler())) // logs unusable environment variables
	sender, err := otlp.NewSender(ctx, cluster)
	if err != nil {
		return fmt.Errorf("preparing the traces: %w", err)
	}
	namespace, name, _ := strings.Cut(o.Position, "/")
	delivery := &otlp.Delivery{
		Log: home.log, Store: &positionConfigMap{clients.CoreV1().ConfigMaps(namespace), name}, Send: sender.Send, Logger: logger,
		Alarm: func(err error) { logger.Warn("sending spans of the log failed; retrying", "error", err) },
		OnRejected: func(spans int, err error) {
			logger.Error("the collector refused spans of the log; they are not sent again, but their events are still in the log", "spans", spans, "error", err)
		},
	}
	reregister(tracingMetrics(delivery)...)
	return d.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		logger.Info("sending the spans of the log")
		delivery.Run(ctx)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		return sender.Close(ctx)
	}))
}

func tracingMetrics(d *otlp.Delivery) []prometheus.Collector {
	spans := func(result string, count func(otlp.State) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "scute_tracing_spans_total", ConstLabels: prometheus.Labels{"result": result},
			Help: "Spans that the collector accepted, and spans that it refused and that are not sent again, since the start.",
		}, func() float64 { return float64(count(d.State())) })
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scute_tracing_sequence", Help: "Sequence of the event log up to which the spans that ended were sent.",
		}, func() float64 { return float64(d.State().Sequence) }),
		spans("sent", func(s otlp.State) uint64 { return s.Sent }),
		spans("refused", func(s otlp.State) uint64 { return s.Rejected }),
	}
}
