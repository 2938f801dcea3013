package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

// Collector stores the spans that arrive. It can be stopped and restarted, and keeps them.
type Collector struct {
	// Address is the address at which it receives OTLP over gRPC.
	Address string

	running receiver.Traces
	mu      sync.Mutex
	spans   []ptrace.Span
}

// host is a collector with one component.
type host struct{}

// GetExtensions implements component.Host.
func (host) GetExtensions() map[component.ID]component.Component { return nil }

// Start starts to receive spans.
func (c *Collector) Start(ctx context.Context) error {
	factory := otlpreceiver.NewFactory()
	config, ok := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	if !ok {
		return errors.New("the receiver has another configuration than its own")
	}
	config.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = c.Address
	next, err := consumer.NewTraces(c.take)
	if err != nil {
		return fmt.Errorf("preparing the collector: %w", err)
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: component.TelemetrySettings{
		Logger: zap.NewNop(), TracerProvider: trace.NewTracerProvider(), MeterProvider: metric.NewMeterProvider(), Resource: pcommon.NewResource(),
	}}
	if c.running, err = factory.CreateTraces(ctx, settings, config, next); err != nil {
		return fmt.Errorf("preparing the collector: %w", err)
	}
	if err := c.running.Start(ctx, host{}); err != nil {
		return fmt.Errorf("starting the collector: %w", err)
	}
	return nil
}

// Stop stops the receiver.
func (c *Collector) Stop(ctx context.Context) error { return c.running.Shutdown(ctx) }

func (c *Collector) take(_ context.Context, traces ptrace.Traces) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				kept := ptrace.NewSpan()
				span.CopyTo(kept)
				c.spans = append(c.spans, kept)
			}
		}
	}
	return nil
}

// Spans returns the spans that have arrived so far, in order.
func (c *Collector) Spans() []ptrace.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}
